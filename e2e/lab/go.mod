module pawl.dev/pawl/e2e/lab

go 1.26
