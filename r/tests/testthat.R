library(testthat)
library(conclave)

test_check("conclave")
