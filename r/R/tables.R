# Tables cross to the program as folders of raw columns: `columns.json` and one little-endian file per column, so that every number
# keeps its bits.

# Writes the columns of a data frame that `names` lists, all of them if one is missing: the program then says which there are.
write_raw <- function(table, names, folder) {
  dir.create(folder, mode = "0700")
  if (!all(names %in% names(table))) names <- base::names(table)
  columns <- lapply(seq_along(names), function(at) write_column(table[[names[at]]], names[at], paste0(at, ".raw"), folder))
  description <- list(rows = jsonlite::unbox(nrow(table)), columns = columns)
  write_text(jsonlite::toJSON(description, digits = NA), file.path(folder, "columns.json"))
  folder
}

write_column <- function(x, name, file, folder) {
  path <- file.path(folder, file)
  column <- list(name = jsonlite::unbox(enc2utf8(name)), file = jsonlite::unbox(file))
  if (is.character(x) || is.factor(x)) {
    x <- if (is.factor(x)) x else factor(x, levels = unique(x[!is.na(x)]))
    places <- as.integer(x) - 1L
    places[is.na(places)] <- -1L
    writeBin(places, path, size = 4, endian = "little")
    return(c(column, list(type = jsonlite::unbox("category"), categories = enc2utf8(levels(x)))))
  }
  x <- as_numbers(x, name)
  writeBin(x, path, size = 8, endian = "little")
  null <- is.na(x) & !is.nan(x)
  if (any(null)) {
    writeBin(as.raw(null), paste0(path, ".nulls"))
    column$nulls <- jsonlite::unbox(paste0(file, ".nulls"))
  }
  c(column, list(type = jsonlite::unbox("float64")))
}

as_numbers <- function(x, name) {
  if (inherits(x, c("Date", "POSIXt", "difftime"))) {
    stop_input(
      "column \"", name, "\" holds dates or times",
      remedy = "turn it into a number, such as as.numeric(x - as.Date(\"2020-01-01\"))"
    )
  }
  if (inherits(x, "integer64")) stop_input("column \"", name, "\" is of class integer64", remedy = "convert it by as.double()")
  if (!is.numeric(x) && !is.logical(x)) {
    stop_input("column \"", name, "\" is of class ", class(x)[1], ", which is neither a number nor a text")
  }
  as.double(unclass(x))
}

# Returns the paths of the tables in the job's order: those of files as they are, those of data frames in a folder of their own.
table_paths <- function(job, tables, folder) {
  if (is.data.frame(tables) || is.character(tables) && length(tables) == 1) tables <- list(tables)
  tables <- as.list(tables)
  if (!is.null(names(tables))) {
    unknown <- setdiff(c(names(tables), job$parties), intersect(names(tables), job$parties))
    if (length(unknown) > 0) {
      stop_input("`tables` must name each party once: ", paste(job$parties, collapse = ", "), "; look at ", paste(unknown, collapse = ", "))
    }
    tables <- tables[job$parties]
  }
  dir.create(folder, mode = "0700")
  one <- function(at) table_path(job, tables[[at]], file.path(folder, at))
  vapply(seq_along(tables), one, character(1))
}

table_path <- function(job, table, folder) {
  if (is.character(table) && length(table) == 1) return(path.expand(table))
  if (!is.data.frame(table)) stop_input("a table must be a data frame, or the path of a .csv or .parquet file")
  write_raw(table, names(job$columns), folder)
}
