(** The plans that the planner may choose, as steps from one plan to another. It may do more here than is correct:
    a step need not keep the result, only the order within each CASE. Two things it may not do, which Postgres does
    not do either: take a scan's row filter out of the scan, and evaluate in a scan a condition that does not read it. *)
From Coq Require Import ZArith List Bool Lia Arith Permutation.
Require Import Values Plans.
Import ListNotations.

(** Operands of AND and OR in another order, NOT moved inwards, a common operand moved out, anywhere. The parts of a
    CASE stay in place. *)
Inductive rewrites : expr -> expr -> Prop :=
| RSame e : rewrites e e
| RTrans a b c : rewrites a b -> rewrites b c -> rewrites a c
| RAndSwap a b : rewrites (EAnd a b) (EAnd b a)
| ROrSwap a b : rewrites (EOr a b) (EOr b a)
| RNotOr a b : rewrites (ENot (EOr a b)) (EAnd (ENot a) (ENot b))
| RNotAnd a b : rewrites (ENot (EAnd a b)) (EOr (ENot a) (ENot b))
| RNotNot a : rewrites (ENot (ENot a)) a
| RFactor f a b : rewrites (EOr (EAnd f a) (EAnd f b)) (EAnd f (EOr a b))
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

(** What follows from a condition: operands of AND left out, also below OR. *)
Inductive weaker : expr -> expr -> Prop :=
| WSame e : weaker e e
| WLeft a b a' : weaker a a' -> weaker (EAnd a b) a'
| WRight a b b' : weaker b b' -> weaker (EAnd a b) b'
| WAnd a b a' b' : weaker a a' -> weaker b b' -> weaker (EAnd a b) (EAnd a' b')
| WOr a b a' b' : weaker a a' -> weaker b b' -> weaker (EOr a b) (EOr a' b').

(** The guard of a condition by the sources that it reads and no others. *)
Definition narrowed (outer : bool) (c : expr) : expr :=
  ECase (all_shown outer (sources_of c)) c (EConst false_).

Inductive step : plan -> plan -> Prop :=
(* Conditions in another order. *)
| SScanOrder s tbl f cs cs' : reordered cs cs' -> step (Scan s tbl f cs) (Scan s tbl f cs')
| SJoinOrder k m l r on cs on' cs' :
    reordered on on' -> reordered cs cs' -> step (Join k m l r on cs) (Join k m l r on' cs')
| SGroupOrder s all keys aggs p cs cs' :
    reordered cs cs' -> step (Group s all keys aggs p cs) (Group s all keys aggs p cs')
| SFilterOrder p cs cs' : reordered cs cs' -> step (Filter p cs) (Filter p cs')
(* An AND made two conditions. *)
| SSplitScan s tbl f a b cs : step (Scan s tbl f (EAnd a b :: cs)) (Scan s tbl f (a :: b :: cs))
| SSplitJoin k m l r on a b cs : step (Join k m l r on (EAnd a b :: cs)) (Join k m l r on (a :: b :: cs))
| SSplitOn k m l r a b on cs : step (Join k m l r (EAnd a b :: on) cs) (Join k m l r (a :: b :: on) cs)
| SSplitGroup s all keys aggs p a b cs :
    step (Group s all keys aggs p (EAnd a b :: cs)) (Group s all keys aggs p (a :: b :: cs))
| SSplitFilter p a b cs : step (Filter p (EAnd a b :: cs)) (Filter p (a :: b :: cs))
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
(* A condition that follows from one of a join, for a scan below it. *)
| SExtract k m l r on c c' cs : weaker c c' -> step (Join k m l r on (c :: cs)) (Join k m l r on (c' :: c :: cs))
| SExtractOn k m l r c c' on cs : weaker c c' -> step (Join k m l r (c :: on) cs) (Join k m l r (c' :: c :: on) cs)
(* No step of Postgres: a grouping of the model reports the visibility of all its scans in one column, the compiler
   in one for each. So a guard that has been pushed below a grouping may test only the sources that it needs. *)
| SNarrow o w c p cs :
    step (Filter p (ECase w c (EConst false_) :: cs)) (Filter p (narrowed o c :: cs))
| SNarrowJoin o w c k m l r on cs :
    step (Join k m l r on (ECase w c (EConst false_) :: cs)) (Join k m l r on (narrowed o c :: cs))
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


(** True if a condition is not true on NULLs in place of the columns of [ss]. *)
Fixpoint never_true (ss : list nat) (c : expr) : bool :=
  null_on ss c ||
  match c with
  | EAnd a b => never_true ss a || never_true ss b
  | EOr a b => never_true ss a && never_true ss b
  | ECase _ a (EConst (Some Z0)) => never_true ss a
  | _ => false
  end.

(** A plan below conditions [cs], of which some are never true on the rows that a left join in it has padded. *)
Fixpoint reduced (cs : list expr) (p : plan) : plan :=
  match p with
  | Join k m l r on cs' =>
      Join (if existsb (never_true (sources_in r)) cs then Inner else k) m (reduced cs l) (reduced cs r) on cs'
  | Filter p cs' => Filter (reduced cs p) cs'
  | Arrange f p => Arrange f (reduced cs p)
  | Probe e p => Probe e (reduced cs p)
  | Scan _ _ _ _ | Group _ _ _ _ _ _ => p
  end.

(** What an OR says of source [s] alone. *)
Fixpoint extract (s : nat) (c : expr) : option expr :=
  match c with
  | EOr a b => match extract s a, extract s b with Some a, Some b => Some (EOr a b) | _, _ => None end
  | EAnd a b =>
      match extract s a, extract s b with
      | Some a, Some b => Some (EAnd a b)
      | Some a, None => Some a
      | None, b => b
      end
  | _ => if mentions s c && forallb (fun x => Nat.eqb (fst x) s) (reads c) then Some c else None
  end.
Definition extracted (ss : list nat) (c : expr) : list expr :=
  match c with
  | EOr _ _ => flat_map (fun s => match extract s c with Some c' => [c'] | None => [] end) ss
  | _ => []
  end.

(** The two sides of an equality, which a hash or merge join computes before it compares them. *)
Definition sides (c : expr) : list (expr * expr) :=
  match c with ECmp CEq a b | ECase _ (ECmp CEq a b) _ => [(a, b); (b, a)] | _ => [] end.

Definition narrowings (c : expr) : list expr :=
  match c with ECase w c (EConst (Some Z0)) => [narrowed true c] | _ => [] end.

(** Rows on which a side of an equality is not NULL; a hash join stores no others. *)
Definition with_key (e : expr) (p : plan) : plan :=
  Arrange (filter (fun t => match eval t e with Ok None => false | _ => true end)) (Probe e p).

Definition moves_here (p : plan) : list plan :=
  match p with
  | Scan s tbl f cs => map (fun x => Scan s tbl f (fst x :: snd x)) (picks cs)
  | Filter p cs =>
      flat_map (fun x => Filter p (fst x :: snd x) ::
        (if takes p (fst x) then [Filter (push (fst x) p) (snd x)] else []) ++
        map (fun c => Filter p (c :: snd x)) (narrowings (fst x))) (picks cs)
      ++ [Filter (reduced cs p) cs]
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
      let all := sources_in l ++ sources_in r in
      flat_map (fun x =>
        Join k m l r on (fst x :: snd x) ::
        (if takes l (fst x) && negb (mentions_any (sources_in r) (fst x))
         then [Join k m (push (fst x) l) r on (snd x)] else []) ++
        (if inner && takes r (fst x) && near (fst x) then [Join k m l (push (fst x) r) on (snd x)] else []) ++
        map (fun c => Join k m l r on (c :: snd x)) (narrowings (fst x)) ++
        map (fun c => Join k m l r on (c :: fst x :: snd x)) (extracted all (fst x))) (picks cs)
      ++ flat_map (fun x =>
        Join k m l r (fst x :: snd x) cs ::
        (if takes r (fst x) && near (fst x) then [Join k m l (push (fst x) r) (snd x) cs] else []) ++
        map (fun c => Join k m l r (c :: fst x :: snd x) cs) (extracted (sources_in r) (fst x))) (picks on)
      ++ [Join k m (reduced (if inner then on ++ cs else cs) l) (reduced (on ++ cs) r) on cs]
      ++ flat_map (fun c => flat_map (fun ab =>
        if negb (mentions_any (sources_in r) (fst ab)) && negb (mentions_any (sources_in l) (snd ab))
        then [Join k m (Probe (fst ab) l) r on cs; Join k m l (Probe (snd ab) r) on cs;
              Join k m (if inner then with_key (fst ab) l else l) (with_key (snd ab) r) on cs]
        else []) (sides c)) (on ++ cs)
      ++ (if inner then [Join Inner m l r [] (on ++ cs)] else
          if existsb (never_true (sources_in r)) cs then [Join Inner m l r on cs] else [])
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
  | Probe e p => p :: map (Probe e) (moves p)
  | Arrange f p => map (Arrange f) (moves p)
  | Scan _ _ _ _ => []
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

Lemma allowed_in (F : plan -> plan) : (forall p q, step p q -> step (F p) (F q)) ->
  forall p q, allowed p q -> allowed (F p) (F q).
Proof. intros S p q A. induction A; [constructor|eapply AStep; eauto]. Qed.

Lemma trans p q r : allowed p q -> allowed q r -> allowed p r.
Proof. intros A B. induction B; eauto using AStep. Qed.

Lemma join_in k m l r on cs l' r' : allowed l l' -> allowed r r' -> allowed (Join k m l r on cs) (Join k m l' r' on cs).
Proof.
  intros L R. eapply trans.
  - apply (allowed_in (fun l => Join k m l r on cs)); eauto. intros; now constructor.
  - apply (allowed_in (fun r => Join k m l' r on cs)); eauto. intros; now constructor.
Qed.

Lemma reduced_allowed cs p : allowed p (reduced cs p).
Proof.
  induction p; cbn [reduced]; try constructor.
  - eapply trans; [apply join_in; eauto|]. destruct (existsb _ cs), k; try constructor. apply one, SReduce.
  - apply (allowed_in (fun p => Filter p cs0)); auto. intros; now constructor.
  - apply (allowed_in (Arrange f)); auto. intros; now constructor.
  - apply (allowed_in (Probe e)); auto. intros; now constructor.
Qed.

Lemma extract_weaker s c c' : extract s c = Some c' -> weaker c c'.
Proof.
  revert c'; induction c; cbn [extract]; intros c' E;
    try (destruct (_ && _); [injection E as <-; constructor|discriminate]).
  - destruct (extract s c1), (extract s c2); try discriminate; injection E as <-;
      [apply WAnd|apply WLeft|apply WRight]; auto.
  - destruct (extract s c1); [|discriminate]. destruct (extract s c2); [|discriminate].
    injection E as <-. constructor; auto.
Qed.
Lemma extracted_weaker ss c c' : In c' (extracted ss c) -> weaker c c'.
Proof.
  destruct c; cbn [extracted]; try easy. intros I. apply in_flat_map in I. destruct I as (s & _ & I).
  destruct (extract s _) eqn:E; [|easy]. destruct I as [<-|[]]. eapply extract_weaker; eauto.
Qed.
Lemma narrowings_form c c' : In c' (narrowings c) ->
  exists w b, c = ECase w b (EConst false_) /\ c' = narrowed true b.
Proof.
  destruct c; cbn; try easy. destruct c3; try easy. destruct v as [[]|]; try easy. intros [<-|[]]. eauto.
Qed.

Lemma with_key_allowed e p : allowed p (with_key e p).
Proof. eapply two; [apply SProbe|apply SArrange]. Qed.

Lemma moves_here_allowed p p' : In p' (moves_here p) -> allowed p p'.
Proof.
  destruct p; cbn [moves_here]; intros I; cases;
    try (eapply one; constructor; eauto using reordered_same; fail);
    try (eapply two; [constructor; eauto using reordered_same|];
         try (apply SPushFilter; assumption); try (apply SPushLeft; assumption); try (apply SPushOn; assumption);
         try (apply SPushRight; assumption); fail).
  - match goal with H : In _ (map _ _) |- _ => apply in_map_iff in H; destruct H as (c & <- & N) end.
    apply narrowings_form in N. destruct N as (w & b & -> & ->).
    eapply two; [apply SJoinOrder; eauto using reordered_same|apply SNarrowJoin].
  - match goal with H : In _ (map _ _) |- _ => apply in_map_iff in H; destruct H as (c & <- & X) end.
    apply extracted_weaker in X.
    eapply two; [apply SJoinOrder; eauto using reordered_same|now apply SExtract].
  - match goal with H : In _ (map _ _) |- _ => apply in_map_iff in H; destruct H as (c & <- & X) end.
    apply extracted_weaker in X.
    eapply two; [apply SJoinOrder; eauto using reordered_same|now apply SExtractOn].
  - apply join_in; apply reduced_allowed.
  - match goal with H : In _ _ |- _ => apply in_flat_map in H; destruct H as (c & _ & H);
      apply in_flat_map in H; destruct H as ([a b] & _ & H); cbn [fst snd] in H end.
    cases; try (apply one; constructor; constructor; fail).
    apply join_in; [destruct k; [|constructor]|]; apply with_key_allowed.
  - destruct k; try discriminate. apply one, SOnToWhere.
  - destruct k; try discriminate. apply one, SReduce.
  - destruct k; try discriminate. apply one, SCommute.
  - destruct p1; cases; match goal with k : kind |- _ => destruct k end; cases; try discriminate; apply one;
      first [apply SAssociate|apply SInnerBelowLeft].
  - destruct p1; cases; match goal with k : kind |- _ => destruct k end; cases; try discriminate; apply one;
      first [apply SLeftBelowInner|apply SLeftSwap].
  - destruct all; try discriminate. eapply two; [apply SGroupOrder; eassumption|now apply SPushGroup].
  - match goal with H : In _ (map _ _) |- _ => apply in_map_iff in H; destruct H as (c & <- & N) end.
    apply narrowings_form in N. destruct N as (w & b & -> & ->).
    eapply two; [apply SFilterOrder; eauto using reordered_same|apply SNarrow].
  - apply (allowed_in (fun p => Filter p cs)); [intros; now constructor|apply reduced_allowed].
Qed.

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
  - apply (allowed_in (Arrange f)); auto. intros; now constructor.
  - destruct I as [<-|I]; [apply one, SNoProbe|]. apply in_map_iff in I. destruct I as (q & <- & I).
    apply (allowed_in (Probe e)); auto. intros; now constructor.
Qed.
