module pawl.dev/pawl/hello

go 1.26.0
