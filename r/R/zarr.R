# Reads a store of draws: Zarr v3, uncompressed, one chunk of a chain after another.

# Returns the draws of a group as an array of draws, chains and parameters, in the job's order; NULL if the store has no such group.
read_group <- function(store, group) {
  root <- jsonlite::fromJSON(file.path(store, "zarr.json"), simplifyVector = FALSE)
  parameters <- unlist(root$attributes$parameters)
  nodes <- root$consolidated_metadata$metadata
  nodes <- nodes[startsWith(names(nodes), paste0(group, "/"))]
  named <- vapply(nodes, function(node) if (is.null(node$attributes$parameter)) "" else node$attributes$parameter, character(1))
  at <- match(parameters, named)
  if (length(nodes) == 0 || anyNA(at)) return(NULL)
  values <- lapply(names(nodes)[at], function(name) read_array(file.path(store, name), nodes[[name]]))
  array(unlist(values), c(dim(values[[1]]), length(parameters)), list(NULL, NULL, parameters))
}

# Reads an array of chains and draws as a matrix with a column per chain.
read_array <- function(path, node) {
  layout <- node$chunk_key_encoding$configuration$separator
  endian <- node$codecs[[1]]$configuration$endian
  if (node$data_type != "float64" || length(node$codecs) != 1 || endian != "little" || layout != "/") {
    stop(error_condition(list(code = "internal", message = paste0(path, " is not an uncompressed array of doubles"))))
  }
  shape <- unlist(node$shape)
  width <- node$chunk_grid$configuration$chunk_shape[[2]]
  chain <- function(at) {
    chunks <- seq_len(ceiling(shape[2] / width)) - 1
    read <- function(chunk) readBin(file.path(path, "c", at, chunk), "double", width, size = 8, endian = "little")
    unlist(lapply(chunks, read))[seq_len(shape[2])]
  }
  matrix(unlist(lapply(seq_len(shape[1]) - 1, chain)), shape[2], shape[1])
}
