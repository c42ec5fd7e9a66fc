// Command hello stands for the manager where a test has no time to compile that.
package main

import "fmt"

func main() { fmt.Println("hello") }
