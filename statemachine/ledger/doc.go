// Package ledger keeps the log: it turns events into transitions, chains them with a digest, and derives status from
// them; it seals pages of the log into RolloutRecords; and it reads all of that back and proves that nothing was
// changed, lost or reordered. docs/ledger.md gives the format to the byte.
//
// A [Log] is an immutable value. The order in which a caller uses it is a contract:
//
//	log, err := ledger.Load(name, status, records) // verified; log.State() is what to decide on
//	next, err := log.Append(events)                // ErrMustSeal: seal log.Cut(), TrimSealed, and append again
//	write next.Trim().Status()                     // one write, guarded by resourceVersion
//	for page in next.Complete(): create Record(namespace, page)
//
// Only pages of a status that is stored are sealed, and only what is sealed is trimmed. So a crash at any moment leaves
// a log that is whole: a record may repeat what is in status, but nothing is in neither, and a record that exists
// already is the cut that counts ([Log.Sealed]).
//
// The package keeps api and statemachine ignorant of each other, and it performs no I/O, so that the kubectl plugin can
// verify a log with the very code that wrote it.
package ledger
