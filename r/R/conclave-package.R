#' Bayesian inference across data owners who keep their records
#'
#' The package runs the program `conclave`, which [conclave_path()] finds. A job is written with [conclave_job()] or read with
#' [conclave_read_job()], examined with [conclave_plan()] and [conclave_rehearse()], and sent with [conclave_submit()].
#'
#' Every error of the program is a condition of the classes `conclave_<code>` and `conclave_error`. Its fields are `code`,
#' `party` and `remedy`. The codes are `invalid_input`, `not_found`, `policy`, `revoked`, `budget`, `unauthenticated`,
#' `unreachable`, `conflict` and `internal`.
#' @keywords internal
"_PACKAGE"

