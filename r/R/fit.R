# Builds a fit from a run's object and its store of draws, a folder that is removed with the fit or at the end of the session.
new_fit <- function(result, store, job = NULL, run = NULL) {
  kept <- new.env(parent = emptyenv())
  kept$path <- store
  reg.finalizer(kept, function(kept) unlink(kept$path, recursive = TRUE), onexit = TRUE)
  structure(
    list(
      result = result, draws = read_group(store, "posterior"), draws_original = read_group(store, "posterior_original"),
      job = job, run = run, store = kept
    ),
    class = "conclave_fit"
  )
}

#' Read a result
#'
#' A fit is what [conclave_fit()], [conclave_rehearse()] and [conclave_refit()] return. Its fields are `result` (the run's object, as
#' the program prints it), `draws` and `draws_original` (arrays of draws, chains and parameters, on the scale of the priors and in
#' the data's own units), and `job` where it is known.
#'
#' @param x,object A fit.
#' @param original `TRUE` for the data's own units; `FALSE` for the scale of the priors, on which numeric columns lie in \[-1, 1\].
#' @param ... Ignored.
#' @return `summary()` gives the rows that the program reports, a data frame with one row per parameter: mean, standard deviation,
#'   5 %, 50 % and 95 % quantiles, effective sample sizes, split R-hat and Monte Carlo errors. `as_draws()` and the like give draws of the package posterior.
#' @examples
#' \dontrun{
#' summary(fit, original = TRUE)
#' posterior::summarise_draws(posterior::as_draws(fit))
#' bayesplot::mcmc_intervals(posterior::as_draws_array(fit))
#' }
#' @name fit
NULL

#' @rdname fit
#' @export
summary.conclave_fit <- function(object, original = FALSE, ...) {
  rows <- if (is_adequate(object)) object$result else object$result$inadequate
  rows <- if (original) rows$posterior_original else rows$posterior
  if (is.null(rows) || length(rows) == 0) stop_input("the run has no ", if (original) "posterior in the data's own units" else "posterior")
  rows
}

is_adequate <- function(fit) !isFALSE(fit$result$adequacy$adequate)

#' @rdname fit
#' @export
print.conclave_fit <- function(x, ...) {
  result <- x$result
  size <- dim(x$draws)
  cat("<conclave_fit> ", result$name, " by ", result$algorithm, ": ", size[2], " chains of ", size[1], " draws\n", sep = "")
  if (!is_adequate(x)) cat("No adequate answer: ", paste(result$adequacy$reasons, collapse = "; "), "\n", sep = "")
  rows <- tryCatch(summary(x, original = TRUE), conclave_error = function(e) summary(x))
  shown <- intersect(c("name", "mean", "sd", "q5", "median", "q95", "rhat", "ess_bulk"), names(rows))
  rows <- rows[shown]
  numbers <- vapply(rows, is.numeric, logical(1))
  rows[numbers] <- lapply(rows[numbers], signif, 4)
  print.data.frame(rows, row.names = FALSE)
  for (text in result$warnings) cat(strwrap(paste("Warning:", text), exdent = 2), sep = "\n")
  invisible(x)
}

draws_of <- function(fit, original) {
  draws <- if (original) fit$draws_original else fit$draws
  if (is.null(draws)) stop_input("the run has no draws", if (original) " in the data's own units")
  draws
}

# The methods for the generics of posterior, which NAMESPACE registers when that package is loaded.

#' @rdname fit
#' @exportS3Method posterior::as_draws
as_draws.conclave_fit <- function(x, original = FALSE, ...) posterior::as_draws_array(draws_of(x, original))

#' @rdname fit
#' @exportS3Method posterior::as_draws_array
as_draws_array.conclave_fit <- function(x, original = FALSE, ...) posterior::as_draws_array(draws_of(x, original))

#' @rdname fit
#' @exportS3Method posterior::as_draws_df
as_draws_df.conclave_fit <- function(x, original = FALSE, ...) posterior::as_draws_df(draws_of(x, original))

#' @rdname fit
#' @exportS3Method posterior::as_draws_matrix
as_draws_matrix.conclave_fit <- function(x, original = FALSE, ...) posterior::as_draws_matrix(draws_of(x, original))

#' @rdname fit
#' @exportS3Method posterior::as_draws_rvars
as_draws_rvars.conclave_fit <- function(x, original = FALSE, ...) posterior::as_draws_rvars(draws_of(x, original))
