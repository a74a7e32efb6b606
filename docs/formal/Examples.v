(** The theorem is not vacuous: without a guard, with a guard that tests one of two tables, with a row filter that
    leaves its scan, and without CASE's order there are two databases that agree and a plan that tells them apart. *)
From Coq Require Import ZArith List Bool Arith Permutation.
Require Import Values Plans Planner Guard.
Import ListNotations.
Local Open Scope Z_scope.

(** Rows have a region and a credit; the caller may see region 1. *)
Definition pol : policy :=
  {| filter_of := fun _ r => is_true (nth 0 r None); mask_of := fun _ r => r |}.
Definition rows (l : list (Z * Z)) : list row := map (fun x => [Some (fst x); Some (snd x)]) l.
Definition db (a b : list (Z * Z)) : database :=
  fun tbl => match tbl with 0%nat => rows a | 1%nat => rows b | _ => [] end.

(** Differ in a hidden row of table 0, whose credit is 0. *)
Definition d1 := db [(0, 0); (1, 5)] [(1, 7)].
Definition d2 := db [(1, 5)] [(1, 7)].
Lemma d_agree : agree pol d1 d2.
Proof. intros [|[|tbl]]; reflexivity. Qed.

(** [100 / credit > 0] of table 0, as source 0. *)
Definition fails : expr := ECmp CLt (EConst (Some 0)) (EArith Div (EConst (Some 100)) (ECol 0 2)).
Definition scan (s : nat) (cs : list expr) : plan := Scan s s false cs.
Definition tell_apart (p : plan) (a b : database) : Prop := outcome p [] (scanned pol a) <> outcome p [] (scanned pol b).

(** Without a guard. *)
Definition bare : plan := Filter (scan 0 [ECol 0 0]) [fails].
Theorem without_guard : exists p, allowed bare p /\ tell_apart p d1 d2.
Proof.
  exists (Filter (scan 0 [fails; ECol 0 0]) []). split; [|cbv; discriminate].
  apply one. now apply (SPushFilter (scan 0 [ECol 0 0])).
Qed.

(** The same condition guarded, in the same place. *)
Definition guarded_fails : expr := ECase (ECol 0 0) fails (EConst false_).
Example with_guard : outcome (Filter (scan 0 [guarded_fails; ECol 0 0]) []) [ECol 0 2] (scanned pol d1) = Ok [[Some 5]].
Proof. reflexivity. Qed.

(** A condition on two tables, of which only one is tested: the hidden row is of the other. *)
Definition half : expr :=
  ECase (ECol 1 0) (ECmp CLt (ECol 1 2) (EArith Div (EConst (Some 100)) (ECol 0 2))) (EConst false_).
Theorem half_a_guard :
  exists p, allowed (Filter (Join Inner Nested (scan 0 [ECol 0 0]) (scan 1 [ECol 1 0]) [] []) [half]) p /\ tell_apart p d1 d2.
Proof.
  exists (Filter (Join Inner Nested (scan 1 [ECol 1 0]) (scan 0 [half; ECol 0 0]) [] []) []). split; [|cbv; discriminate].
  eapply AStep; [eapply AStep; [eapply AStep; [apply AStart|]|]|].
  - apply (SPushFilter (Join Inner Nested (scan 0 [ECol 0 0]) (scan 1 [ECol 1 0]) [] [])). reflexivity.
  - apply SInFilter. apply (SCommute Nested Nested).
  - apply SInFilter. now apply (SPushRight Inner Nested (scan 1 [ECol 1 0]) (scan 0 [ECol 0 0])).
Qed.

(** A HAVING condition with an aggregate, NOT (100 / credit > 0 OR count( * ) > 9), without a guard: NOT moved inwards
    makes two conditions of it, and the one that reads the key alone runs below the grouping. *)
Definition by_credit (cs : list expr) : plan :=
  Group 5 false [ECol 0 0; ECol 0 2] [Count] (scan 0 [ECol 0 0]) cs.
Definition key_fails : expr := ECmp CLt (EConst (Some 0)) (EArith Div (EConst (Some 100)) (ECol 5 1)).
Definition many : expr := ECmp CLt (EConst (Some 9)) (ECol 5 2).
Theorem bare_having :
  exists p, allowed (by_credit [ENot (EOr key_fails many)]) p /\ tell_apart p d1 d2.
Proof.
  exists (Group 5 false [ECol 0 0; ECol 0 2] [Count] (scan 0 [ENot fails; ECol 0 0]) [ENot many]).
  split; [|cbv; discriminate].
  eapply AStep; [apply (two _ (by_credit [EAnd (ENot key_fails) (ENot many)]))|].
  - apply SGroupOrder. exists [ENot (EOr key_fails many)]. split; auto. constructor; [apply RNotOr|constructor].
  - apply SSplitGroup.
  - now apply (SPushGroup 5 [ECol 0 0; ECol 0 2] [Count] (scan 0 [ECol 0 0]) (ENot key_fails)).
Qed.

(** Row filters stay in their scans, by assumption: if the one of table 0 ran after a join with table 1, then a
    condition on table 1 alone, guarded as it should be, would fail only if table 0 has a row, hidden or not. *)
Definition e1 := db [(0, 9)] [(1, 0)].
Definition e2 := db [] [(1, 0)].
Lemma e_agree : agree pol e1 e2.
Proof. intros [|[|tbl]]; reflexivity. Qed.
Definition on_1 : expr :=
  ECase (ECol 1 0) (ECmp CLt (EConst (Some 0)) (EArith Div (EConst (Some 100)) (ECol 1 2))) (EConst false_).
Theorem late_filter :
  tell_apart (Join Inner Nested (scan 0 []) (scan 1 [on_1; ECol 1 0]) [] [ECol 0 0]) e1 e2.
Proof. cbv; discriminate. Qed.
Theorem filter_in_place :
  ~ tell_apart (Join Inner Nested (scan 0 [ECol 0 0]) (scan 1 [on_1; ECol 1 0]) [] []) e1 e2.
Proof. intros H; apply H; reflexivity. Qed.

(** CASE's order, by assumption: with AND in its place, whose operands the planner may swap, the guard is none. *)
Theorem and_is_no_guard :
  exists p, allowed (Filter (scan 0 [ECol 0 0]) [EAnd (ECol 0 0) fails]) p /\ tell_apart p d1 d2.
Proof.
  exists (Filter (scan 0 [EAnd fails (ECol 0 0); ECol 0 0]) []). split; [|cbv; discriminate].
  eapply two; [now apply (SPushFilter (scan 0 [ECol 0 0]))|].
  apply SInFilter, SScanOrder. exists [EAnd (ECol 0 0) fails; ECol 0 0]. split; auto.
  constructor; [apply RAndSwap|repeat constructor].
Qed.
