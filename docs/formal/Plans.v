(** Databases under a policy, queries, and the plans that run them. *)
From Coq Require Import ZArith List Bool Lia Arith.
Require Import Values.
Import ListNotations.

(** A row filter and a mask of a whole row, for each table: any total functions of the stored row. *)
Record policy := { filter_of : nat -> row -> bool; mask_of : nat -> row -> row }.
Definition database := nat -> list row.

(** What the caller may see. *)
Definition visible (pol : policy) (d : database) (tbl : nat) : list row :=
  map (mask_of pol tbl) (filter (filter_of pol tbl) (d tbl)).

(** What a scan yields before its filter: for each stored row the masked columns, behind its visibility. *)
Definition scanned (pol : policy) (d : database) (tbl : nat) : list row :=
  map (fun r => (if filter_of pol tbl r then true_ else false_) :: mask_of pol tbl r) (d tbl).

Inductive kind := Inner | Left.
(** [Nested]: the right side runs once for each row of the left, and may read it. [Hash]: it runs once, first. *)
Inductive mode := Nested | Hash.
Inductive aggregate := Count | CountOf (e : expr) | Sum (e : expr) | Min (e : expr) | Max (e : expr).

(** A query level's FROM. [QGroup s all keys aggs f wh having] is a grouped subquery as source [s]; with [all] it has
    no keys and one row. Column 0 of [s] is its visibility; then come its keys and aggregates. *)
Inductive from :=
| QTable (s tbl : nat)
| QJoin (k : kind) (l r : from) (on : list expr)
| QGroup (s : nat) (all : bool) (keys : list expr) (aggs : list aggregate) (f : from) (wh having : list expr).

(** A plan. Lists of conditions are evaluated in their order, for each row. [fenced]: nothing is pushed into the scan.
    [Arrange] changes the order of rows; [Probe] evaluates something on each row and drops it, as a hash key or a
    sort key that is computed early. *)
Inductive plan :=
| Scan (s tbl : nat) (fenced : bool) (cs : list expr)
| Join (k : kind) (m : mode) (l r : plan) (on cs : list expr)
| Group (s : nat) (all : bool) (keys : list expr) (aggs : list aggregate) (p : plan) (cs : list expr)
| Filter (p : plan) (cs : list expr)
| Arrange (f : list tuple -> list tuple) (p : plan)
| Probe (e : expr) (p : plan).

Definition argument (a : aggregate) : expr :=
  match a with Count => EConst true_ | CountOf e | Sum e | Min e | Max e => e end.

Definition value_eqb (a b : value) : bool :=
  match a, b with Some x, Some y => Z.eqb x y | None, None => true | _, _ => false end.
Fixpoint row_eqb (a b : row) : bool :=
  match a, b with
  | [], [] => true
  | x :: a, y :: b => value_eqb x y && row_eqb a b
  | _, _ => false
  end.

Definition known (vs : list value) : list Z := flat_map (fun v => match v with Some z => [z] | None => [] end) vs.
Definition fold1 (f : Z -> Z -> Z) (zs : list Z) : value :=
  match zs with [] => None | z :: zs => Some (fold_left f zs z) end.
Definition aggregated (a : aggregate) (vs : list value) : value :=
  match a with
  | Count => Some (Z.of_nat (length vs))
  | CountOf _ => Some (Z.of_nat (length (known vs)))
  | Sum _ => fold1 Z.add (known vs)
  | Min _ => fold1 Z.min (known vs)
  | Max _ => fold1 Z.max (known vs)
  end.

Definition add_to_group (x : row * row) (groups : list (row * list row)) : list (row * list row) :=
  match find (fun g => row_eqb (fst g) (fst x)) groups with
  | None => groups ++ [(fst x, [snd x])]
  | Some _ => map (fun g => if row_eqb (fst g) (fst x) then (fst g, snd g ++ [snd x]) else g) groups
  end.
Definition grouped (all : bool) (n : nat) (xs : list (row * row)) : list (row * list row) :=
  if all then [(repeat true_ n, map snd xs)] else fold_left (fun gs x => add_to_group x gs) xs [].
Fixpoint indexed {A} (i : nat) (l : list A) : list (nat * A) :=
  match l with [] => [] | a :: l => (i, a) :: indexed (S i) l end.
Definition group_row (aggs : list aggregate) (g : row * list row) : row :=
  fst g ++ map (fun ia => aggregated (snd ia) (map (fun r => nth (fst ia) r None) (snd g))) (indexed 0 aggs).

(** The entries that [t] has before those of [env], on top of [l]. *)
Definition beside (env t l : tuple) : tuple := firstn (length t - length env) t ++ l.
Definition padded (k : kind) (t : tuple) (matches : list tuple) : list tuple :=
  match k, matches with Left, [] => [t] | _, _ => matches end.

(** Runs a plan on scan results [d], inside a loop over rows [env]. The first error ends it. *)
Fixpoint run (p : plan) (d : database) (env : tuple) : res (list tuple) :=
  match p with
  | Scan s tbl _ cs => select cs (map (fun r => (s, r) :: env) (d tbl))
  | Join k Nested l r on cs =>
      do ls <- run l d env;
      do out <- mapM (fun t => do rs <- run r d t; do ms <- select on rs; Ok (padded k t ms)) ls;
      select cs (concat out)
  | Join k Hash l r on cs =>
      do rs <- run r d env;
      do ls <- run l d env;
      do out <- mapM (fun t => do ms <- select on (map (fun x => beside env x t) rs); Ok (padded k t ms)) ls;
      select cs (concat out)
  | Group s all keys aggs p cs =>
      do ts <- run p d env;
      do xs <- mapM (fun t => do ks <- mapM (eval t) keys; do vs <- mapM (eval t) (map argument aggs); Ok (ks, vs)) ts;
      select cs (map (fun g => (s, group_row aggs g) :: env) (grouped all (length keys) xs))
  | Filter p cs => do ts <- run p d env; select cs ts
  | Arrange f p => do ts <- run p d env; Ok (f ts)
  | Probe e p => do ts <- run p d env; do _ <- mapM (fun t => eval t e) ts; Ok ts
  end.

(** The outcome of a statement: the rows of its select list, or the error. *)
Definition outcome (p : plan) (outs : list expr) (d : database) : res (list row) :=
  do ts <- run p d []; mapM (fun t => mapM (eval t) outs) ts.

(** The test that the row of a source is shown. [outer]: the level has an outer join, whose padded rows pass. *)
Definition shown (outer : bool) (s : nat) : expr := if outer then EIsNotFalse (ECol s 0) else ECol s 0.
Fixpoint all_shown (outer : bool) (ss : list nat) : expr :=
  match ss with [] => EConst true_ | s :: ss => EAnd (shown outer s) (all_shown outer ss) end.
