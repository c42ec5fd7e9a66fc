package lab

import (
	"errors"
	"fmt"
	"net"
)

// freePorts asks the system for n ports of 127.0.0.1 that nobody holds. They
// are free when it returns, which is no promise: Up tries again when somebody
// was faster.
func freePorts(n int) (ports []int, err error) {
	// All are held until all are known, so that no number comes twice.
	for range n {
		listener, listenErr := net.Listen("tcp4", "127.0.0.1:0")
		if listenErr != nil {
			return nil, errors.Join(fmt.Errorf("find a free port: %w", listenErr), err)
		}
		defer func() { err = errors.Join(err, listener.Close()) }()
		address, ok := listener.Addr().(*net.TCPAddr)
		if !ok {
			return nil, fmt.Errorf("find a free port: unexpected address %s", listener.Addr())
		}
		ports = append(ports, address.Port)
	}
	return ports, nil
}
