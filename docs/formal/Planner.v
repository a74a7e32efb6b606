(** The plans that the planner may choose, as steps from one plan to another. It may do more here than is correct:
    a step need not keep the result, only the order within each CASE. Two things it may not do, which Postgres does
    not do either: take a scan's row filter out of the scan, and evaluate in a scan a condition that does not read it. *)
From Coq Require Import ZArith List Bool Lia Arith Permutation.
Require Import Values Plans.
Import ListNotations.

(** Operands of AND and OR in another order, anywhere; those of CASE stay in place. *)
Inductive rewrites : expr -> expr -> Prop :=
| RSame e : rewrites e e
| RTrans a b c : rewrites a b -> rewrites b c -> rewrites a c
| RAndSwap a b : rewrites (EAnd a b) (EAnd b a)
| ROrSwap a b : rewrites (EOr a b) (EOr b a)
| RAnd a b a' b' : rewrites a a' -> rewrites b b' -> rewrites (EAnd a b) (EAnd a' b')
| ROr a b a' b' : rewrites a a' -> rewrites b b' -> rewrites (EOr a b) (EOr a' b')
| RArith op a b a' b' : rewrites a a' -> rewrites b b' -> rewrites (EArith op a b) (EArith op a' b')
| RCmp op a b a' b' : rewrites a a' -> rewrites b b' -> rewrites (ECmp op a b) (ECmp op a' b')
| RNot a a' : rewrites a a' -> rewrites (ENot a) (ENot a')
| RIsNull a a' : rewrites a a' -> rewrites (EIsNull a) (EIsNull a')
| RIsNotFalse a a' : rewrites a a' -> rewrites (EIsNotFalse a) (EIsNotFalse a')
| RCase w a b w' a' b' :
    rewrites w w' -> rewrites a a' -> rewrites b b' -> rewrites (ECase w a b) (ECase w' a' b').

(** A list of conjuncts in another order, each rewritten. *)
Definition reordered (cs cs' : list expr) : Prop := exists ds, Permutation cs ds /\ Forall2 rewrites ds cs'.

(** True if every column of source [s] that a condition reads is one of its [n] keys. *)
Definition keys_only (s n : nat) (c : expr) : bool :=
  forallb (fun x => negb (Nat.eqb (fst x) s) || Nat.ltb (snd x) n) (reads c).

(** Where a condition may be pushed to, and the plan with it. *)
Fixpoint takes (p : plan) (c : expr) : bool :=
  match p with
  | Scan s _ fenced _ => negb fenced && mentions s c
  | Arrange _ p | Probe _ p => takes p c
  | _ => true
  end.
Fixpoint push (c : expr) (p : plan) : plan :=
  match p with
  | Scan s tbl fenced cs => Scan s tbl fenced (c :: cs)
  | Join k m l r on cs => Join k m l r on (c :: cs)
  | Group s all keys aggs p cs => Group s all keys aggs p (c :: cs)
  | Filter p cs => Filter p (c :: cs)
  | Arrange f p => Arrange f (push c p)
  | Probe e p => Probe e (push c p)
  end.

(** A condition that never raises: it has no arithmetic. *)
Fixpoint no_arith (e : expr) : bool :=
  match e with
  | ECol _ _ | EConst _ => true
  | EArith _ _ _ => false
  | ECmp _ a b | EAnd a b | EOr a b => no_arith a && no_arith b
  | ENot a | EIsNull a | EIsNotFalse a => no_arith a
  | ECase w a b => no_arith w && no_arith a && no_arith b
  end.

Inductive step : plan -> plan -> Prop :=
(* Conditions in another order. *)
| SScanOrder s tbl f cs cs' : reordered cs cs' -> step (Scan s tbl f cs) (Scan s tbl f cs')
| SJoinOrder k m l r on cs on' cs' :
    reordered on on' -> reordered cs cs' -> step (Join k m l r on cs) (Join k m l r on' cs')
| SGroupOrder s all keys aggs p cs cs' :
    reordered cs cs' -> step (Group s all keys aggs p cs) (Group s all keys aggs p cs')
| SFilterOrder p cs cs' : reordered cs cs' -> step (Filter p cs) (Filter p cs')
(* Conditions pushed down, or copied down: into either side of a join, below a grouping, into a scan that they read. *)
| SPushLeft k m l r on c cs : takes l c = true -> step (Join k m l r on (c :: cs)) (Join k m (push c l) r on cs)
| SPushRight k m l r on c cs : takes r c = true -> step (Join k m l r on (c :: cs)) (Join k m l (push c r) on cs)
| SPushOn k m l r c on cs : takes r c = true -> step (Join k m l r (c :: on) cs) (Join k m l (push c r) on cs)
| SPushFilter p c cs : takes p c = true -> step (Filter p (c :: cs)) (Filter (push c p) cs)
| SPushGroup s keys aggs p c cs :
    keys_only s (length keys) c = true -> takes p (subst s keys c) = true ->
    step (Group s false keys aggs p (c :: cs)) (Group s false keys aggs (push (subst s keys c) p) cs)
| SCopyLeft k m l r on c cs :
    takes l c = true -> step (Join k m l r on (c :: cs)) (Join k m (push c l) r on (c :: cs))
| SCopyRight k m l r on c cs :
    takes r c = true -> step (Join k m l r on (c :: cs)) (Join k m l (push c r) on (c :: cs))
(* A condition that the planner infers, such as an equality from two others. *)
| SInfer s tbl cs c :
    no_arith c = true -> (forall x, In x (reads c) -> fst x = s) -> step (Scan s tbl false cs) (Scan s tbl false (c :: cs))
(* Joins: a left join made an inner one, ON made WHERE, other orders, other methods. *)
| SReduce m l r on cs : step (Join Left m l r on cs) (Join Inner m l r on cs)
| SOnToWhere m l r on cs : step (Join Inner m l r on cs) (Join Inner m l r [] (on ++ cs))
| SWhereToOn m l r on cs : step (Join Inner m l r on cs) (Join Inner m l r (on ++ cs) [])
| SCommute m n l r on cs : step (Join Inner m l r on cs) (Join Inner n r l on cs)
| SAssociate m m' n n' a b c on1 cs1 on2 cs2 :
    step (Join Inner m (Join Inner m' a b on1 cs1) c on2 cs2)
         (Join Inner n a (Join Inner n' b c [] []) [] (on1 ++ cs1 ++ on2 ++ cs2))
| SInnerBelowLeft m m' n n' a b c on1 cs1 on2 cs2 :
    step (Join Inner m (Join Left m' a b on1 cs1) c on2 cs2)
         (Join Left n (Join Inner n' a c [] []) b on1 (cs1 ++ on2 ++ cs2))
| SLeftBelowInner m m' n n' a b c on1 cs1 on2 cs2 :
    step (Join Left m (Join Inner m' a c on1 cs1) b on2 cs2)
         (Join Inner n (Join Left n' a b on2 []) c on1 (cs1 ++ cs2))
| SLeftSwap m m' n n' a b c on1 cs1 on2 cs2 :
    step (Join Left m (Join Left m' a b on1 cs1) c on2 cs2)
         (Join Left n (Join Left n' a c on2 []) b on1 (cs1 ++ cs2))
| SLeftAssociate m m' n n' a b c on1 cs1 on2 cs2 :
    step (Join Left m (Join Left m' a b on1 cs1) c on2 cs2)
         (Join Left n a (Join Left n' b c on2 []) on1 (cs1 ++ cs2))
| SMode k m m' l r on cs : step (Join k m l r on cs) (Join k m' l r on cs)
(* Rows that have left a node: in any order, and any expression evaluated on them, or no longer. *)
| SArrange f p : step p (Arrange f p)
| SProbe e p : step p (Probe e p)
| SNoArrange f p : step (Arrange f p) p
| SNoProbe e p : step (Probe e p) p
| SNoFilter p : step (Filter p []) p
(* Anywhere within a plan. *)
| SInLeft k m l l' r on cs : step l l' -> step (Join k m l r on cs) (Join k m l' r on cs)
| SInRight k m l r r' on cs : step r r' -> step (Join k m l r on cs) (Join k m l r' on cs)
| SInGroup s all keys aggs p p' cs : step p p' -> step (Group s all keys aggs p cs) (Group s all keys aggs p' cs)
| SInFilter p p' cs : step p p' -> step (Filter p cs) (Filter p' cs)
| SInArrange f p p' : step p p' -> step (Arrange f p) (Arrange f p')
| SInProbe e p p' : step p p' -> step (Probe e p) (Probe e p').

Inductive allowed : plan -> plan -> Prop :=
| AStart p : allowed p p
| AStep p q r : allowed p q -> step q r -> allowed p r.

(** * Steps by computation

    [moves p] are allowed plans near [p] that keep its result. The comparison with Postgres walks along them. *)

(** Each element with the rest of its list. *)
Fixpoint picks {A} (l : list A) : list (A * list A) :=
  match l with
  | [] => []
  | a :: l => (a, l) :: map (fun x => (fst x, a :: snd x)) (picks l)
  end.

Fixpoint sources_in (p : plan) : list nat :=
  match p with
  | Scan s _ _ _ | Group s _ _ _ _ _ => [s]
  | Join _ _ l r _ _ => sources_in l ++ sources_in r
  | Filter p _ | Arrange _ p | Probe _ p => sources_in p
  end.
Definition mentions_any (ss : list nat) (c : expr) : bool := existsb (fun s => mentions s c) ss.
(** True if a plan evaluates a condition on a row of [ss], which it then gets from a loop around it. *)
Fixpoint depends (ss : list nat) (p : plan) : bool :=
  match p with
  | Scan _ _ _ cs => existsb (mentions_any ss) cs
  | Join _ _ l r on cs => depends ss l || depends ss r || existsb (mentions_any ss) (on ++ cs)
  | Group _ _ _ _ p cs | Filter p cs => depends ss p || existsb (mentions_any ss) cs
  | Arrange _ p | Probe _ p => depends ss p
  end.
(** True if a condition on NULLs in place of the columns of [ss] is NULL. *)
Fixpoint null_on (ss : list nat) (e : expr) : bool :=
  match e with
  | ECol s _ => existsb (Nat.eqb s) ss
  | EArith _ a b | ECmp _ a b => null_on ss a || null_on ss b
  | ENot a => null_on ss a
  | _ => false
  end.

Definition moves_here (p : plan) : list plan :=
  match p with
  | Scan s tbl f cs => map (fun x => Scan s tbl f (fst x :: snd x)) (picks cs)
  | Filter p cs =>
      flat_map (fun x => Filter p (fst x :: snd x) ::
        (if takes p (fst x) then [Filter (push (fst x) p) (snd x)] else [])) (picks cs)
      ++ match cs with [] => [p] | _ => [] end
  | Group s all keys aggs p cs =>
      flat_map (fun x => Group s all keys aggs p (fst x :: snd x) ::
        (let c := subst s keys (fst x) in
         if negb all && keys_only s (length keys) (fst x) && takes p c
         then [Group s false keys aggs (push c p) (snd x)] else [])) (picks cs)
  | Join k m l r on cs =>
      let near c := match m with Nested => true | Hash => negb (mentions_any (sources_in l) c) end in
      let inner := match k with Inner => true | Left => false end in
      let alone := negb (depends (sources_in l) r) in
      flat_map (fun x =>
        Join k m l r on (fst x :: snd x) ::
        (if takes l (fst x) && negb (mentions_any (sources_in r) (fst x))
         then [Join k m (push (fst x) l) r on (snd x)] else []) ++
        (if inner && takes r (fst x) && near (fst x) then [Join k m l (push (fst x) r) on (snd x)] else [])) (picks cs)
      ++ flat_map (fun x =>
        Join k m l r (fst x :: snd x) cs ::
        (if takes r (fst x) && near (fst x) then [Join k m l (push (fst x) r) (snd x) cs] else [])) (picks on)
      ++ (if inner then [Join Inner m l r [] (on ++ cs)] else
          if existsb (null_on (sources_in r)) cs then [Join Inner m l r on cs] else [])
      ++ (if alone then [Join k match m with Nested => Hash | Hash => Nested end l r on cs] else [])
      ++ (if inner && alone then [Join Inner Nested r l on cs] else [])
      ++ match k, l with
         | Inner, Join Inner _ a b on1 cs1 =>
             [Join Inner Nested a (Join Inner Nested b r [] []) [] (on1 ++ cs1 ++ on ++ cs)]
         | Inner, Join Left _ a b on1 cs1 =>
             if depends (sources_in b) r then [] else
             [Join Left Nested (Join Inner Nested a r [] []) b on1 (cs1 ++ on ++ cs)]
         | Left, Join Inner _ a c on1 cs1 =>
             if depends (sources_in c) r || existsb (mentions_any (sources_in c)) on then [] else
             [Join Inner Nested (Join Left Nested a r on []) c on1 (cs1 ++ cs)]
         | Left, Join Left _ a b on1 cs1 =>
             if depends (sources_in b) r || existsb (mentions_any (sources_in b)) on then [] else
             [Join Left Nested (Join Left Nested a r on []) b on1 (cs1 ++ cs)]
         | _, _ => []
         end
  | Arrange _ _ | Probe _ _ => []
  end.

Fixpoint moves (p : plan) : list plan :=
  moves_here p ++
  match p with
  | Join k m l r on cs =>
      map (fun l => Join k m l r on cs) (moves l) ++ map (fun r => Join k m l r on cs) (moves r)
  | Group s all keys aggs p cs => map (fun p => Group s all keys aggs p cs) (moves p)
  | Filter p cs => map (fun p => Filter p cs) (moves p)
  | Scan _ _ _ _ | Arrange _ _ | Probe _ _ => []
  end.

Lemma picks_reordered cs c rest : In (c, rest) (picks cs) -> reordered cs (c :: rest).
Proof.
  intros I. exists (c :: rest). split.
  - revert c rest I; induction cs as [|a cs IH]; cbn; intros c rest I; [easy|].
    destruct I as [E|I]; [injection E as -> ->; auto|].
    apply in_map_iff in I. destruct I as ([b bs] & E & I). cbn in E. injection E as -> <-.
    apply IH in I. rewrite I. apply perm_swap.
  - clear I. induction (c :: rest); auto using RSame.
Qed.
Lemma reordered_same cs : reordered cs cs.
Proof. exists cs. split; auto. induction cs; auto using RSame. Qed.

Lemma one p q : step p q -> allowed p q.
Proof. intros S. exact (AStep _ _ _ (AStart p) S). Qed.
Lemma two p q r : step p q -> step q r -> allowed p r.
Proof. intros S T. exact (AStep _ _ _ (one _ _ S) T). Qed.

Ltac cases := repeat match goal with
  | H : In _ (_ ++ _) |- _ => apply in_app_iff in H; destruct H
  | H : In _ (flat_map _ _) |- _ => apply in_flat_map in H; destruct H as ([? ?] & ? & ?); cbn [fst snd] in *
  | H : In _ (map _ (picks _)) |- _ => apply in_map_iff in H; destruct H as ([? ?] & <- & ?); cbn [fst snd] in *
  | H : In _ (if ?b then _ else _) |- _ => destruct b eqn:?
  | H : In _ (_ :: _) |- _ => destruct H as [<-|H]
  | H : In _ [] |- _ => destruct H
  | H : In (_, _) (picks _) |- _ => apply picks_reordered in H
  | H : _ && _ = true |- _ => apply andb_prop in H; destruct H
  end.

Lemma moves_here_allowed p p' : In p' (moves_here p) -> allowed p p'.
Proof.
  destruct p; cbn [moves_here]; intros I; cases;
    try (eapply one; constructor; eauto using reordered_same; fail);
    try (eapply two; [constructor; eauto using reordered_same|];
         try (apply SPushFilter; assumption); try (apply SPushLeft; assumption); try (apply SPushOn; assumption);
         try (apply SPushRight; assumption); fail).
  - destruct k; try discriminate. apply one, SOnToWhere.
  - destruct k; try discriminate. apply one, SReduce.
  - destruct k; try discriminate. apply one, SCommute.
  - destruct p1; cases; match goal with k : kind |- _ => destruct k end; cases; try discriminate; apply one;
      first [apply SAssociate|apply SInnerBelowLeft].
  - destruct p1; cases; match goal with k : kind |- _ => destruct k end; cases; try discriminate; apply one;
      first [apply SLeftBelowInner|apply SLeftSwap].
  - destruct all; try discriminate. eapply two; [apply SGroupOrder; eassumption|now apply SPushGroup].
Qed.

Lemma allowed_in (F : plan -> plan) : (forall p q, step p q -> step (F p) (F q)) ->
  forall p q, allowed p q -> allowed (F p) (F q).
Proof. intros S p q A. induction A; [constructor|eapply AStep; eauto]. Qed.

Theorem moves_allowed p p' : In p' (moves p) -> allowed p p'.
Proof.
  revert p'; induction p; intros p' I; cbn [moves] in I; apply in_app_iff in I;
    destruct I as [I|I]; try (now apply moves_here_allowed); try (now destruct I);
    repeat match goal with
      | H : In _ (_ ++ _) |- _ => apply in_app_iff in H; destruct H
      | H : In _ (map _ _) |- _ => apply in_map_iff in H; destruct H as (q & <- & H)
      end.
  - apply (allowed_in (fun l => Join k m l p2 on cs)); auto. intros; now constructor.
  - apply (allowed_in (fun r => Join k m p1 r on cs)); auto. intros; now constructor.
  - apply (allowed_in (fun p => Group s all keys aggs p cs)); auto. intros; now constructor.
  - apply (allowed_in (fun p => Filter p cs)); auto. intros; now constructor.
Qed.
