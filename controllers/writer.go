package controllers

import (
	"encoding/json"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"pawl.dev/pawl/api/v1alpha1"
)

// partitionManager is the field manager that wrote the partition last, where that is not Pawl. It is the name of a
// client, never a person.
func partitionManager(set *appsv1.StatefulSet) string {
	manager, newest := "", time.Time{}
	for _, entry := range set.ManagedFields {
		if entry.Subresource != "" || entry.FieldsV1 == nil || !ownsPartition(entry.FieldsV1.GetRawBytes()) {
			continue
		}
		at := time.Time{}
		if entry.Time != nil {
			at = entry.Time.Time
		}
		if manager == "" || at.After(newest) {
			manager, newest = entry.Manager, at
		}
	}
	if manager == reporter {
		return ""
	}
	return manager
}

func ownsPartition(raw []byte) bool {
	var fields struct {
		Spec struct {
			UpdateStrategy struct {
				RollingUpdate struct {
					Partition *struct{} `json:"f:partition"`
				} `json:"f:rollingUpdate"`
			} `json:"f:updateStrategy"`
		} `json:"f:spec"`
	}
	return json.Unmarshal(raw, &fields) == nil && fields.Spec.UpdateStrategy.RollingUpdate.Partition != nil
}

// SlimStatefulSet is what the cache keeps of a StatefulSet: who wrote which field only of those that are managed.
func SlimStatefulSet(o any) (any, error) {
	if set, is := o.(*appsv1.StatefulSet); is && set.Labels[v1alpha1.ModeLabel] == "" {
		set.ManagedFields = nil
	}
	return o, nil
}
