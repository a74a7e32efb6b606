(** The executable model in OCaml, for the comparison with the compiler and Postgres (test/formal). *)
Require Import Values Plans Planner Guard.
From Coq Require Extraction.
From Coq Require Import ExtrOcamlBasic.
Extraction Language OCaml.
Extraction "model.ml" governed_query well_formed risks_of moves outcome scanned eval is_true sources_of.
