"""What zlmdb costs, beside other stores, on the workloads of five published benchmarks: see docs/performance.rst."""
