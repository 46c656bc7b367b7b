#' Write a job from a regression formula
#'
#' A job is the text that an analyst signs and that owners read. It takes no data: the columns and their public bounds are declared
#' with [bounds()], [binary()], [levels_of()] or [codebook()]. The program parses and checks the job; an error shows its place in
#' the formula.
#'
#' @param formula A formula, or a text. Terms are those of R: `a*b`, `(a + b)^2`, `0 + a`, `log(a)`, `I(a^2)`,
#'   `ns(age, knots = c(40, 60))`, `offset(log(days))`, `(1 + age || party)`.
#' @param family `"logistic"` (or `"binomial"`), `"linear"` (or `"gaussian"`), `"poisson"`, `"negative_binomial"`, `"student_t"`.
#' @param parties Names of the data owners.
#' @param columns A named list of declarations. Columns that the formula does not use are left out.
#' @param epsilon,delta The budget of the job at each owner.
#' @param name The name of the job.
#' @param priors A named list or vector of densities such as `c(age = "normal(0, 0.5)", default = "normal(0, 1)")`.
#' @param records An estimate of each owner's number of records, which [conclave_plan()] needs: one number, or one for each party
#'   by its name.
#' @param algorithm The name of an algorithm; `"auto"` chooses by the model.
#' @param sampler A named list of keys of the table `[sampler]`, such as `list(chains = 4, draws = 2000)`.
#' @param aggregation A named list of keys of the table `[aggregation]`.
#' @param incomplete_rows `TRUE` if owners may hold rows with a missing value, which then count and contribute zero.
#' @param df Degrees of freedom of `student_t`.
#' @param path For `conclave_read_job()`, the job file.
#' @return An object of class `conclave_job`: a list of `toml` (the text), `signed` (the text as it would be signed, with what the
#'   program chooses), `name`, `algorithm`, `parties`, `model`, `columns`, `parameters`, `epsilon` and `delta`.
#' @examples
#' \dontrun{
#' job <- conclave_job(
#'   died ~ age + ward, "logistic",
#'   parties = c("a", "b"), epsilon = 3,
#'   columns = list(died = binary(), age = bounds(0, 100), ward = levels_of("east", "west"))
#' )
#' }
#' @export
conclave_job <- function(formula, family, parties, columns, epsilon, delta = 1e-6, name = "study", priors = NULL, records = NULL,
                         algorithm = NULL, sampler = NULL, aggregation = NULL, incomplete_rows = FALSE, df = NULL) {
  if (!is.list(columns) || is.null(names(columns)) || !all(vapply(columns, inherits, logical(1), "conclave_column"))) {
    stop_input("`columns` must be a named list of bounds(), binary() and levels_of()")
  }
  file <- tempfile("conclave-columns-", fileext = ".toml")
  on.exit(unlink(file), add = TRUE)
  write_text(paste0("[columns]\n", toml_lines(lapply(columns, unclass))), file)
  alike <- is.null(names(records)) && length(records) == 1
  args <- c(
    "job", "--formula", formula_text(formula), "--family", family, "--columns", file, "--name", name,
    "--epsilon", toml_number(epsilon), "--delta", toml_number(delta), rbind("--party", parties),
    if (alike) c("--records", format(records, scientific = FALSE)), if (!is.null(df)) c("--df", toml_number(df))
  )
  text <- call_program(args)$job
  if (!is.null(algorithm)) text <- sub("(?m)^algorithm = .*$", paste("algorithm =", toml_string(algorithm)), text, perl = TRUE)
  if (incomplete_rows) text <- sub("(?m)^(family = .*)$", "\\1\nincomplete_rows = true", text, perl = TRUE)
  table <- function(key, entries) if (!is.null(entries)) paste0("\n[", key, "]\n", toml_lines(as.list(entries)))
  plan <- if (!is.null(records) && !alike) table("plan", list(records = as.list(records)))
  describe(paste0(text, table("prior", priors), table("sampler", sampler), table("aggregation", aggregation), plan))
}

#' @rdname conclave_job
#' @export
conclave_read_job <- function(path) describe_file(path)

# Writes a formula as the program reads it.
formula_text <- function(formula) {
  if (is.character(formula)) return(formula)
  if (!inherits(formula, "formula")) stop_input("`formula` must be a formula or a text")
  text <- paste(trimws(deparse(formula, width.cutoff = 500L)), collapse = " ")
  # A vector of knots has brackets in a job.
  gsub("\\bc\\(([^()]*)\\)", "[\\1]", text, perl = TRUE)
}

describe <- function(text) {
  file <- tempfile("conclave-job-", fileext = ".toml")
  on.exit(unlink(file), add = TRUE)
  describe_file(write_text(text, file))
}

describe_file <- function(path) {
  if (!file.exists(path)) stop_input(path, " does not exist")
  job <- call_program(c("describe", path), simplify = TRUE)
  attributes(job) <- list(names = names(job))
  job$parties <- as.character(job$parties)
  structure(job, class = "conclave_job")
}

as_job <- function(job) {
  if (inherits(job, "conclave_job")) return(job)
  if (is.character(job) && length(job) == 1) return(conclave_read_job(job))
  stop_input("`job` must come from conclave_job() or conclave_read_job(), or be the path of a job file")
}

# Calls `use` with the path of a file that holds the job.
with_job_file <- function(job, use) {
  file <- tempfile("conclave-job-", fileext = ".toml")
  on.exit(unlink(file), add = TRUE)
  use(write_text(job$toml, file))
}

#' @export
print.conclave_job <- function(x, ...) {
  cat("<conclave_job> ", x$name, ": ", x$model, " by ", x$algorithm, "\n", sep = "")
  cat("parties:    ", paste(x$parties, collapse = ", "), "\n", sep = "")
  cat("parameters: ", paste(x$parameters, collapse = ", "), "\n", sep = "")
  cat("budget:     epsilon ", format(x$epsilon), ", delta ", format(x$delta), " at each party\n", sep = "")
  invisible(x)
}

#' @export
summary.conclave_job <- function(object, ...) {
  cat(object$signed)
  invisible(object)
}
