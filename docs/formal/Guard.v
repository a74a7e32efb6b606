(** The guard, and the theorem: of two databases that agree on what the caller may see, every allowed plan of the
    governed query makes the same outcome. *)
From Coq Require Import ZArith List Bool Lia Arith Permutation.
Require Import Values Plans Planner.
Import ListNotations.

(** * The governed query *)

Section Governed.
(** Columns of grouped sources whose definition may raise. *)
Variable risks : list (nat * nat).
Definition risky (s c : nat) : bool := existsb (fun x => Nat.eqb (fst x) s && Nat.eqb (snd x) c) risks.

(** True if an expression never raises, even if the planner replaces its columns by their definitions. *)
Fixpoint total (e : expr) : bool :=
  match e with
  | ECol s c => negb (risky s c)
  | EConst _ => true
  | EArith _ _ _ => false
  | ECmp _ a b | EAnd a b | EOr a b => total a && total b
  | ENot a | EIsNull a | EIsNotFalse a => total a
  | ECase w a b => total w && total a && total b
  end.

Definition guard (outer : bool) (c : expr) : expr :=
  if total c then c else ECase (all_shown outer (sources_of c)) c (EConst false_).

Fixpoint has_outer (f : from) : bool :=
  match f with
  | QTable _ _ | QGroup _ _ _ _ _ _ _ => false
  | QJoin k l r _ => (match k with Left => true | Inner => false end) || has_outer l || has_outer r
  end.
Fixpoint sources (f : from) : list nat :=
  match f with
  | QTable s _ | QGroup s _ _ _ _ _ _ => [s]
  | QJoin _ l r _ => sources l ++ sources r
  end.

(** The keys of a governed grouping: the visibility of its rows in front. *)
Definition keys_of (all : bool) (keys : list expr) (f : from) : list expr :=
  if all then [EConst true_] else all_shown (has_outer f) (sources f) :: keys.

(** [fence]: every scan is fenced, and the conditions for which [keep] holds stay without a guard, as equalities
    that joins need. *)
Variable fence : bool.
Variable keep : expr -> bool.
Definition governed_condition (outer : bool) (c : expr) : expr := if fence && keep c then c else guard outer c.

(** A HAVING condition: guarded if it reads keys alone. An AND, OR or NOT that may raise and reads an aggregate is kept
    whole by a CASE whose test reads one, too, since a part that reads keys alone could otherwise be pushed below. *)
Definition composite (c : expr) : bool :=
  match c with EAnd _ _ | EOr _ _ | ENot _ => true | _ => false end.
Definition governed_having (s n : nat) (c : expr) : expr :=
  if keys_only s n c then governed_condition false c
  else if composite c && negb (total c)
  then ECase (EIsNotFalse (ECmp CEq (ECol s n) (ECol s n))) c (EConst false_)
  else c.

Fixpoint governed_from (outer : bool) (f : from) : plan :=
  match f with
  | QTable s tbl => if fence then Filter (Scan s tbl true [ECol s 0]) [] else Scan s tbl false [ECol s 0]
  | QJoin k l r on =>
      Join k Nested (governed_from outer l) (governed_from outer r) (map (governed_condition outer) on) []
  | QGroup s all keys aggs f wh having =>
      let ks := keys_of all keys f in
      Group s all ks aggs (Filter (governed_from (has_outer f) f) (map (governed_condition (has_outer f)) wh))
        (map (governed_having s (length ks)) having)
  end.
Definition governed (f : from) (wh : list expr) : plan :=
  Filter (governed_from (has_outer f) f) (map (governed_condition (has_outer f)) wh).

(** True for a query whose groupings read their own level only, and for which [risks] is right. *)
Fixpoint well_formed_from (f : from) : bool :=
  match f with
  | QTable s _ => forallb (fun x => negb (Nat.eqb (fst x) s)) risks
  | QJoin _ l r _ => well_formed_from l && well_formed_from r
  | QGroup s all keys _ f _ _ =>
      well_formed_from f
      && forallb (fun k => forallb (fun s => existsb (Nat.eqb s) (sources f)) (sources_of k)) keys
      && forallb (fun ik => risky s (fst ik) || total (snd ik)) (indexed 0 (keys_of all keys f))
  end.
Definition well_formed (f : from) : bool :=
  forallb (fun x => negb (Nat.eqb (snd x) 0)) risks && well_formed_from f.

(** * What holds of every allowed plan *)

(** True if [e] evaluates to false, not to NULL, wherever the row of [s] is hidden. *)
Fixpoint tests (s : nat) (e : expr) : bool :=
  match e with
  | ECol s' 0 => Nat.eqb s' s
  | EAnd a b => tests s a || tests s b
  | EIsNotFalse a => tests s a
  | _ => false
  end.

(** True if [e] does not raise on a hidden row of [s], nor does what the planner makes of it. *)
Fixpoint safe (s : nat) (e : expr) : bool :=
  match e with
  | ECol s' c => negb (risky s' c)
  | EConst _ => true
  | EArith _ _ _ => false
  | ECmp _ a b | EAnd a b | EOr a b => safe s a && safe s b
  | ENot a | EIsNull a | EIsNotFalse a => safe s a
  | ECase w a b => safe s w && (tests s w || safe s a) && safe s b
  end.

(** Guarded for each source that it reads. *)
Definition guarded (c : expr) : Prop := forall s, mentions s c = true -> safe s c = true.
Definition conditions (cs : list expr) : Prop := fence = false -> forall c, In c cs -> guarded c.

(** Of a condition on source [s] above its grouping: each operand of AND, OR and NOT in it that reads keys alone is safe
    for each source in [ss]. *)
Fixpoint parts_safe (ss : nat -> Prop) (s n : nat) (c : expr) : Prop :=
  match c with
  | EAnd a b | EOr a b => parts_safe ss s n a /\ parts_safe ss s n b
  | ENot a => parts_safe ss s n a
  | _ => keys_only s n c = true -> forall s', ss s' -> safe s' c = true
  end.
Definition having_safe (s n : nat) (c : expr) : Prop := parts_safe (fun s' => mentions s' c = true) s n c.

(** Keys of a grouping: the first tests each source that any of them reads, and those that are not risky are total. *)
Definition good_keys (s : nat) (keys : list expr) : Prop :=
  (forall i, risky s i = false -> total (nth i keys (EConst None)) = true) /\
  (forall k s', In k keys -> mentions s' k = true -> tests s' (nth 0 keys (EConst None)) = true) /\ keys <> [].

Fixpoint secure (p : plan) : Prop :=
  match p with
  | Scan s _ f cs =>
      f = fence /\ In (ECol s 0) cs /\ (forall c, In c cs -> safe s c = true) /\ (forall i, risky s i = false)
  | Join _ _ l r on cs => secure l /\ secure r /\ conditions on /\ conditions cs
  | Group s all keys _ p cs =>
      secure p /\ (all = false -> good_keys s keys /\
        (fence = false -> forall c, In c cs -> having_safe s (length keys) c))
  | Filter p cs => secure p /\ conditions cs
  | Arrange _ p | Probe _ p => secure p
  end.

(** * Expressions on hidden rows *)

Definition hidden (t : tuple) (s : nat) : Prop := column t s 0 = false_.

Lemma tests_false t s e v : hidden t s -> tests s e = true -> eval t e = Ok v -> eval t e = Ok false_.
Proof.
  intros H; revert v; induction e; intros w T E; cbn in T; try discriminate.
  - destruct c; try discriminate. apply Nat.eqb_eq in T; subst. cbn. now rewrite H.
  - cbn in E |- *. apply orb_prop in T.
    destruct (eval t e1) as [x|] eqn:E1; cbn in E |- *; try discriminate.
    destruct (truth x) as [[]|] eqn:Tx; try reflexivity;
      (destruct (eval t e2) as [y|] eqn:E2; cbn in E |- *; try discriminate);
      (destruct T as [T|T]; [ specialize (IHe1 _ T eq_refl); injection IHe1 as ->; discriminate
                            | specialize (IHe2 _ T eq_refl); injection IHe2 as ->; reflexivity ]).
  - cbn in E |- *. destruct (eval t e) as [x|] eqn:E1; cbn in E |- *; try discriminate.
    specialize (IHe _ T eq_refl). injection IHe as ->. reflexivity.
Qed.

Lemma safe_no_raise t s e : hidden t s -> safe s e = true -> exists v, eval t e = Ok v.
Proof.
  intros H; induction e; cbn; intros S; try discriminate; eauto;
    repeat match goal with H : _ && _ = true |- _ => apply andb_prop in H; destruct H end.
  - destruct IHe1 as [x ->]; auto; destruct IHe2 as [y ->]; auto; cbn; eauto.
  - destruct IHe1 as [x ->]; auto; destruct IHe2 as [y ->]; auto; cbn; destruct (truth x) as [[]|]; eauto.
  - destruct IHe1 as [x ->]; auto; destruct IHe2 as [y ->]; auto; cbn; destruct (truth x) as [[]|]; eauto.
  - destruct IHe as [x ->]; auto; cbn; eauto.
  - destruct IHe as [x ->]; auto; cbn; eauto.
  - destruct IHe as [x ->]; auto; cbn; eauto.
  - destruct IHe1 as [x Ex]; auto. rewrite Ex; cbn.
    match goal with H : _ || _ = true |- _ => apply orb_prop in H; destruct H as [T|T] end.
    + rewrite (tests_false t s e1 x) in Ex; auto. injection Ex as <-. cbn. auto.
    + destruct (is_true x); auto.
Qed.

Lemma total_safe s e : total e = true -> safe s e = true.
Proof.
  induction e; cbn; intros; auto;
    repeat match goal with H : _ && _ = true |- _ => apply andb_prop in H; destruct H end;
    rewrite ?IHe1, ?IHe2, ?IHe3, ?IHe; auto using orb_true_r. now rewrite orb_true_r.
Qed.

(** * Plans on databases without their hidden rows *)

Definition shown_row (r : row) : bool := negb (value_eqb (nth 0 r None) false_).
Definition stripped (d : database) : database := fun tbl => filter shown_row (d tbl).

Lemma value_eqb_eq a b : value_eqb a b = true -> a = b.
Proof. destruct a, b; cbn; intros; try discriminate; auto. apply Z.eqb_eq in H. now subst. Qed.

Lemma holds_hidden t s cs :
  hidden t s -> In (ECol s 0) cs -> (forall c, In c cs -> safe s c = true) -> holds t cs = Ok false.
Proof.
  intros H; induction cs as [|c cs IH]; cbn [holds]; intros I S; [easy|].
  destruct (safe_no_raise t s c H (S _ (or_introl eq_refl))) as [v E]. rewrite E; cbn.
  destruct (is_true v) eqn:V; auto. destruct I as [->|I].
  - cbn in E. rewrite H in E. injection E as <-. discriminate.
  - apply IH; auto. intros; apply S; now right.
Qed.

Lemma select_stripped s env cs rows :
  In (ECol s 0) cs -> (forall c, In c cs -> safe s c = true) ->
  select cs (map (fun r => (s, r) :: env) rows) = select cs (map (fun r => (s, r) :: env) (filter shown_row rows)).
Proof.
  intros I S; induction rows as [|r rows IH]; auto. cbn [map filter select].
  destruct (shown_row r) eqn:R; cbn [map select].
  - now rewrite IH.
  - rewrite (holds_hidden _ s); auto.
    + cbn [bind]. rewrite IH. match goal with |- context [select ?a ?b] => now destruct (select a b) end.
    + unfold hidden, column; cbn. rewrite Nat.eqb_refl. unfold shown_row in R.
      apply negb_false_iff in R. now apply value_eqb_eq in R.
Qed.

Lemma mapM_ext {A B} (f g : A -> res B) l : (forall a, f a = g a) -> mapM f l = mapM g l.
Proof. intros E; induction l; cbn; auto. now rewrite E, IHl. Qed.

Theorem run_stripped p d : secure p -> forall env, run p d env = run p (stripped d) env.
Proof.
  induction p; intros S env; cbn [secure] in S.
  - destruct S as (_ & I & S & _). cbn [run]. unfold stripped. now apply select_stripped.
  - destruct S as (S1 & S2 & _). specialize (IHp1 S1). specialize (IHp2 S2). destruct m; cbn [run].
    + rewrite IHp1. destruct (run p1 (stripped d) env); cbn; auto.
      erewrite mapM_ext; [reflexivity|]. intros t. now rewrite IHp2.
    + now rewrite IHp1, IHp2.
  - destruct S as (S & _). cbn [run]. now rewrite IHp.
  - destruct S as (S & _). cbn [run]. now rewrite IHp.
  - cbn [run]. now rewrite IHp.
  - cbn [run]. now rewrite IHp.
Qed.

(** * Steps of the planner keep plans secure *)

Ltac parts := repeat match goal with
  | H : _ /\ _ |- _ => destruct H
  | |- _ /\ _ => split
  end.

Lemma rewrites_reads a b : rewrites a b -> forall x, In x (reads a) <-> In x (reads b).
Proof.
  induction 1; intros y; cbn; rewrite ?in_app_iff;
    repeat match goal with H : forall x, In x _ <-> In x _ |- _ => specialize (H y) end; tauto.
Qed.

Ltac booleans :=
  repeat match goal with
    | H : _ && _ = true |- _ => apply andb_prop in H; destruct H
    | H : _ || _ = true |- _ => apply orb_prop in H; destruct H
    end; try discriminate; auto;
  repeat match goal with
    | |- _ && _ = true => apply andb_true_intro; split
    | |- _ || _ = true => apply orb_true_intro
    end; auto.

Lemma rewrites_tests a b : rewrites a b -> forall s, tests s a = true -> tests s b = true.
Proof. induction 1; cbn; intros; booleans. Qed.

Lemma rewrites_same a b : rewrites a b ->
  (forall s, safe s a = true -> safe s b = true) /\ (forall s, tests s a = true -> tests s b = true) /\
  (forall x, In x (reads a) <-> In x (reads b)).
Proof.
  intros R. split; [|split; [now apply rewrites_tests|now apply rewrites_reads]].
  induction R; cbn; intros; booleans. left. eapply rewrites_tests; eauto.
Qed.

Lemma mentions_reads s c : mentions s c = true <-> exists i, In (s, i) (reads c).
Proof.
  unfold mentions. rewrite existsb_exists. split.
  - intros [[s' i] [I E]]. cbn in E. apply Nat.eqb_eq in E. subst. eauto.
  - intros [i I]. exists (s, i). split; auto. cbn. apply Nat.eqb_refl.
Qed.

Lemma guarded_rewrites a b : rewrites a b -> guarded a -> guarded b.
Proof.
  intros R G s M. destruct (rewrites_same _ _ R) as (S & _ & I). apply S, G.
  apply mentions_reads. apply mentions_reads in M. destruct M as [i M]. exists i. now apply I.
Qed.

Lemma keys_only_rewrites a b s n : rewrites a b -> keys_only s n b = true -> keys_only s n a = true.
Proof.
  intros R. destruct (rewrites_same _ _ R) as (_ & _ & I). unfold keys_only. rewrite !forallb_forall.
  intros F x Hx. apply F. now apply I.
Qed.

Lemma reordered_in cs cs' c : reordered cs cs' -> In c cs' -> exists b, In b cs /\ rewrites b c.
Proof.
  intros (ds & P & F) I. assert (exists b, In b ds /\ rewrites b c) as (b & B & R).
  { clear P. induction F; cbn in I; [easy|]. destruct I as [->|I]; [exists x; now split; [left|]|].
    destruct (IHF I) as (b & B & R). exists b. now split; [right|]. }
  exists b. split; auto. eapply Permutation_in; [apply Permutation_sym|]; eauto.
Qed.

Lemma reordered_conditions cs cs' : reordered cs cs' -> conditions cs -> conditions cs'.
Proof.
  intros R C F c I. destruct (reordered_in _ _ _ R I) as (b & B & W). eapply guarded_rewrites; [eassumption|].
  now apply C.
Qed.

Lemma reordered_column s cs cs' : reordered cs cs' -> In (ECol s 0) cs -> In (ECol s 0) cs'.
Proof.
  intros (ds & P & F) I. apply (Permutation_in _ P) in I. clear P cs.
  assert (K : forall a b, rewrites a b -> a = ECol s 0 -> b = ECol s 0).
  { intros a b R; induction R; intros E; try discriminate; auto. }
  induction F; [easy|]. destruct I as [->|I]; [left|right]; auto. symmetry. symmetry. now apply (K _ _ H).
Qed.

Lemma total_key s keys i :
  (forall i, risky s i = false -> total (nth i keys (EConst None)) = true) ->
  risky s i = false -> forall s', safe s' (nth i keys (EConst None)) = true.
Proof. intros G R s'. apply total_safe. now apply G. Qed.

Lemma tests_other s s' keys e : s' <> s -> tests s' e = true -> tests s' (subst s keys e) = true.
Proof.
  intros N; induction e; cbn; intros T; try discriminate; auto.
  - destruct c; try discriminate. apply Nat.eqb_eq in T; subst.
    destruct (Nat.eqb_spec s' s); [easy|]. cbn. apply Nat.eqb_refl.
  - apply orb_prop in T. destruct T as [T|T]; rewrite ?IHe1, ?IHe2 by auto; auto using orb_true_r.
Qed.

Lemma safe_other s s' keys e :
  (forall i, risky s i = false -> total (nth i keys (EConst None)) = true) ->
  s' <> s -> safe s' e = true -> safe s' (subst s keys e) = true.
Proof.
  intros G N; induction e; cbn; intros S; auto;
    repeat match goal with H : _ && _ = true |- _ => apply andb_prop in H; destruct H end;
    rewrite ?IHe1, ?IHe2, ?IHe3, ?IHe by auto; auto.
  - destruct (Nat.eqb_spec s0 s) as [->|]; cbn; auto. apply (total_key s); auto. now apply negb_true_iff.
  - match goal with H : _ || _ = true |- _ => apply orb_prop in H; destruct H as [T|T] end.
    + now rewrite (tests_other _ _ _ _ N T).
    + rewrite IHe2, orb_true_r; auto.
Qed.

Lemma tests_keys s s' keys e :
  tests s' (nth 0 keys (EConst None)) = true -> tests s e = true -> tests s' (subst s keys e) = true.
Proof.
  intros K; induction e; cbn; intros T; try discriminate; auto.
  - destruct c; try discriminate. now rewrite T.
  - apply orb_prop in T. destruct T as [T|T]; rewrite ?IHe1, ?IHe2 by auto; auto using orb_true_r.
Qed.

Lemma safe_keys s s' keys e :
  (forall i, risky s i = false -> total (nth i keys (EConst None)) = true) ->
  tests s' (nth 0 keys (EConst None)) = true -> safe s e = true -> safe s' (subst s keys e) = true.
Proof.
  intros G K; induction e; cbn; intros S; auto;
    repeat match goal with H : _ && _ = true |- _ => apply andb_prop in H; destruct H end;
    rewrite ?IHe1, ?IHe2, ?IHe3, ?IHe by auto; auto.
  - destruct (Nat.eqb_spec s0 s) as [->|]; cbn; auto. apply (total_key s); auto. now apply negb_true_iff.
  - match goal with H : _ || _ = true |- _ => apply orb_prop in H; destruct H as [T|T] end.
    + now rewrite (tests_keys _ _ _ _ K T).
    + rewrite IHe2, orb_true_r; auto.
Qed.

Lemma reads_flat s keys e : reads (subst s keys e) =
  flat_map (fun x => if Nat.eqb (fst x) s then reads (nth (snd x) keys (EConst None)) else [x]) (reads e).
Proof.
  induction e; cbn; rewrite ?flat_map_app, ?IHe1, ?IHe2, ?IHe3; auto.
  destruct (Nat.eqb s0 s); cbn; now rewrite ?app_nil_r.
Qed.

Lemma reads_subst s keys e x : In x (reads (subst s keys e)) ->
  (fst x <> s /\ In x (reads e)) \/ (exists i, In (s, i) (reads e)) /\ exists k, In k keys /\ In x (reads k).
Proof.
  rewrite reads_flat, in_flat_map. intros ([s' i] & I & X). cbn in X.
  destruct (Nat.eqb_spec s' s) as [->|N].
  - right. split; [eauto|]. destruct (nth_in_or_default i keys (EConst None)) as [K|K]; [eauto|].
    rewrite K in X. easy.
  - left. destruct X as [<-|[]]. auto.
Qed.

Lemma guarded_subst s keys c : good_keys s keys -> guarded c -> guarded (subst s keys c).
Proof.
  intros (G & T & _) C s' M. apply mentions_reads in M. destruct M as [i M].
  apply reads_subst in M. destruct M as [[N I]|[[j I] (k & K & R)]].
  - apply safe_other; auto. apply C. apply mentions_reads. eauto.
  - apply (safe_keys s); auto.
    + apply (T k); auto. apply mentions_reads. eauto.
    + apply C. apply mentions_reads. eauto.
Qed.

Lemma keys_only_app s n a b c :
  (forall x, In x (reads c) <-> In x (reads a) \/ In x (reads b)) ->
  keys_only s n c = true -> keys_only s n a = true /\ keys_only s n b = true.
Proof. unfold keys_only. rewrite !forallb_forall. intros I F. split; intros x H; apply F, I; auto. Qed.

Lemma parts_safe_keys ss s n c :
  parts_safe ss s n c -> keys_only s n c = true -> forall s', ss s' -> safe s' c = true.
Proof.
  induction c; cbn [parts_safe]; intros P K; try exact (P K); intros s' I; cbn.
  1,2: destruct P as [P1 P2]; apply (keys_only_app s n c1 c2) in K; [|intros x; cbn; apply in_app_iff];
    destruct K; rewrite IHc1, IHc2; auto.
  apply IHc; auto.
Qed.
Lemma safe_parts (ss : nat -> Prop) s n c : (forall s', ss s' -> safe s' c = true) -> parts_safe ss s n c.
Proof.
  induction c; cbn [parts_safe]; intros S; try (intros _; exact S).
  1,2: split; [apply IHc1|apply IHc2]; intros s' I; specialize (S s' I); cbn in S; apply andb_prop in S; tauto.
  apply IHc. exact S.
Qed.
Lemma parts_safe_incl (ss ss' : nat -> Prop) s n c :
  (forall x, ss' x -> ss x) -> parts_safe ss s n c -> parts_safe ss' s n c.
Proof. intros I; induction c; cbn [parts_safe]; intuition auto. Qed.
Lemma parts_safe_rewrites ss s n a b : rewrites a b -> parts_safe ss s n a -> parts_safe ss s n b.
Proof.
  induction 1; cbn [parts_safe]; auto; try tauto; intros P K s' I;
    (eapply rewrites_same; [constructor; eassumption|]; apply P; auto;
     eapply keys_only_rewrites; [constructor; eassumption|assumption]).
Qed.
Lemma having_rewrites s n a b : rewrites a b -> having_safe s n a -> having_safe s n b.
Proof.
  intros R P. apply (parts_safe_rewrites _ _ _ _ _ R). eapply parts_safe_incl; [|exact P]. intros x M.
  apply mentions_reads. apply mentions_reads in M. destruct M as [i M]. exists i.
  now apply (rewrites_same _ _ R).
Qed.
Lemma having_guarded s n c : guarded c -> having_safe s n c.
Proof. intros G. now apply safe_parts. Qed.

Lemma mentions_and s a b : mentions s (EAnd a b) = mentions s a || mentions s b.
Proof. unfold mentions. cbn. apply existsb_app. Qed.
Lemma having_and s n a b : having_safe s n (EAnd a b) -> having_safe s n a /\ having_safe s n b.
Proof.
  intros [A B]. split; (eapply parts_safe_incl; [|eassumption]); cbn beta; intros x M; rewrite mentions_and, M;
    auto using orb_true_r.
Qed.
Lemma guarded_and a b : guarded (EAnd a b) -> guarded a /\ guarded b.
Proof.
  intros G. split; intros s M; specialize (G s); rewrite mentions_and, M in G; cbn in G;
    rewrite ?orb_true_r in G; specialize (G eq_refl); apply andb_prop in G; tauto.
Qed.

Lemma push_secure c p :
  takes p c = true -> (fence = false -> guarded c) -> secure p -> secure (push c p).
Proof.
  intros T G; induction p; cbn in T |- *; auto.
  - intros (-> & I & S & R). repeat split; auto.
    apply andb_prop in T. destruct T as [F M]. apply negb_true_iff in F.
    intros e [<-|E]; auto. now apply G.
  - intros (S1 & S2 & C1 & C2). repeat split; auto. intros F e [<-|E]; [now apply G|now apply C2].
  - intros (S & K). split; auto. intros A. destruct (K A) as [GK C]. split; auto.
    intros F e [<-|E]; [apply having_guarded; now apply G|now apply C].
  - intros (S & C). split; auto. intros F e [<-|E]; [now apply G|now apply C].
Qed.

Lemma conditions_app a b : conditions (a ++ b) <-> conditions a /\ conditions b.
Proof.
  unfold conditions. split.
  - intros H. split; intros F c I; apply H; auto; apply in_app_iff; auto.
  - intros [A B] F c I. apply in_app_iff in I. destruct I; auto.
Qed.
Lemma conditions_cons c cs : conditions (c :: cs) <-> (fence = false -> guarded c) /\ conditions cs.
Proof.
  unfold conditions. split.
  - intros H. split; [intros F|intros F b I]; apply H; auto; [now left|now right].
  - intros [A B] F b [<-|I]; auto.
Qed.
Lemma conditions_nil : conditions [].
Proof. intros _ c []. Qed.

Lemma infer_safe s c :
  no_arith c = true -> (forall x, In x (reads c) -> fst x = s) -> (forall i, risky s i = false) -> safe s c = true.
Proof.
  intros N R K. apply total_safe. induction c; cbn in *; auto;
    repeat match goal with H : _ && _ = true |- _ => apply andb_prop in H; destruct H end;
    try discriminate; rewrite ?IHc1, ?IHc2, ?IHc3, ?IHc; auto; try (intros; apply R; rewrite ?in_app_iff; auto).
  specialize (R (s0, c) (or_introl eq_refl)). cbn in R. subst. now rewrite K.
Qed.

Lemma weaker_safe a b : weaker a b -> (forall s, safe s a = true -> safe s b = true) /\ incl (reads b) (reads a).
Proof.
  induction 1; cbn; split; intros;
    repeat match goal with
      | H : _ /\ _ |- _ => destruct H
      | H : _ && _ = true |- _ => apply andb_prop in H; destruct H
      end; auto using incl_refl, incl_appl, incl_appr, incl_app.
  all: apply andb_true_intro; auto.
Qed.

Lemma guarded_weaker a b : weaker a b -> guarded a -> guarded b.
Proof.
  intros W G s M. destruct (weaker_safe _ _ W) as [S I]. apply S, G. apply mentions_reads.
  apply mentions_reads in M. destruct M as [i M]. exists i. now apply I.
Qed.

Hypothesis no_risk : forallb (fun x => negb (Nat.eqb (snd x) 0)) risks = true.

Lemma shown_not_risky s : risky s 0 = false.
Proof.
  unfold risky. rewrite forallb_forall in no_risk. apply not_true_is_false. rewrite existsb_exists.
  intros ([a b] & I & E). apply andb_prop in E. destruct E as [_ E]. apply no_risk in I. cbn in E, I.
  now rewrite E in I.
Qed.

Lemma all_shown_tests o ss s : In s ss -> tests s (all_shown o ss) = true.
Proof.
  induction ss as [|x ss IH]; cbn; [easy|]. intros [->|I].
  - destruct o; cbn; now rewrite Nat.eqb_refl.
  - rewrite IH, orb_true_r; auto.
Qed.
Lemma all_shown_total o ss : total (all_shown o ss) = true.
Proof. induction ss; cbn; auto. rewrite IHss. destruct o; cbn; now rewrite shown_not_risky. Qed.
Lemma all_shown_mentions o ss s : mentions s (all_shown o ss) = true -> In s ss.
Proof.
  rewrite mentions_reads. intros [i I]. induction ss as [|x ss IH]; cbn in I; [easy|].
  apply in_app_iff in I. destruct I as [I|I]; [left|right; auto].
  destruct o; cbn in I; destruct I as [E|[]]; now injection E.
Qed.
Lemma mentions_sources s c : mentions s c = true -> In s (sources_of c).
Proof. rewrite mentions_reads. intros [i I]. apply nodup_In. apply (in_map fst _ _ I). Qed.

Lemma tested_guarded o c : guarded (ECase (all_shown o (sources_of c)) c (EConst false_)).
Proof.
  intros s M. assert (In s (sources_of c)) as I.
  { apply mentions_reads in M. destruct M as [i I]. cbn in I. rewrite app_nil_r in I. apply in_app_iff in I.
    destruct I as [I|I]; [apply (all_shown_mentions o)|apply mentions_sources]; apply mentions_reads; eauto. }
  cbn. rewrite all_shown_tests, total_safe by auto using all_shown_total. reflexivity.
Qed.

Theorem step_secure p p' : step p p' -> secure p -> secure p'.
Proof.
  induction 1; cbn [secure]; rewrite ?conditions_app, ?conditions_cons; intros S; parts; auto using conditions_nil;
    try (eapply reordered_conditions; eauto; fail);
    try (apply push_secure; auto; fail); try (intros F; apply tested_guarded);
    try (intros F; eapply guarded_weaker; eauto; fail);
    try (match goal with H : fence = false -> guarded (EAnd _ _) |- fence = false -> guarded _ =>
      intros F; destruct (guarded_and _ _ (H F)); assumption end).
  - eapply reordered_column; eauto.
  - intros c I. destruct (reordered_in _ _ _ H I) as (b & B & W).
    destruct (rewrites_same _ _ W) as (E & _). auto.
  - intros A. destruct (H1 A) as [G C]. split; auto. intros F c I.
    destruct (reordered_in _ _ _ H I) as (b & B & W). apply (having_rewrites _ _ b); auto.
  - match goal with H : In _ (EAnd _ _ :: _) |- _ => destruct H as [H|H]; [discriminate|] end. right. now right.
  - intros c [<-|[<-|I]]; [..|match goal with H : forall c, In c (_ :: _) -> _ |- _ => apply H; now right end];
      match goal with H : forall c, In c (EAnd a b :: _) -> safe _ c = true |- _ =>
        specialize (H _ (or_introl eq_refl)); cbn in H; apply andb_prop in H; tauto end.
  - intros A. match goal with H : all = false -> _ |- _ => destruct (H A) as [G C] end. split; auto.
    intros F c I. pose proof (having_and _ _ _ _ (C F _ (or_introl eq_refl))) as [P Q].
    destruct I as [<-|[<-|I]]; auto. apply C; auto. now right.
  - match goal with H : false = false -> _ |- _ => destruct (H eq_refl) as [G C] end.
    apply push_secure; auto. intros F. apply guarded_subst; auto. intros s' M.
    apply (parts_safe_keys _ _ _ _ (C F _ (or_introl eq_refl))); auto.
  - intros _. match goal with H : false = false -> _ |- _ => destruct (H eq_refl) as [G C] end. split; auto.
    intros F b I. apply C; auto. now right.
  - now right.
  - intros b [<-|I]; auto. now apply infer_safe.
Qed.

Theorem allowed_secure p p' : allowed p p' -> secure p -> secure p'.
Proof. induction 1; eauto using step_secure. Qed.

(** * The governed query is secure *)

Lemma guard_guarded o c : guarded (guard o c).
Proof. unfold guard. destruct (total c) eqn:T; [intros s M; now apply total_safe|apply tested_guarded]. Qed.
Lemma governed_conditions o cs : conditions (map (governed_condition o) cs).
Proof.
  intros F c I. apply in_map_iff in I. destruct I as (b & <- & _). unfold governed_condition. rewrite F.
  apply guard_guarded.
Qed.

Lemma in_indexed {A} (l : list A) i n d : i < length l -> In (n + i, nth i l d) (indexed n l).
Proof.
  revert i n; induction l as [|a l IH]; cbn; intros i n L; [lia|]. destruct i as [|i]; [left; f_equal; lia|].
  right. replace (n + S i) with (S n + i) by lia. apply IH. lia.
Qed.

Lemma scan_secure s tbl : forallb (fun x => negb (Nat.eqb (fst x) s)) risks = true -> secure (Scan s tbl fence [ECol s 0]).
Proof.
  intros W. rewrite forallb_forall in W. cbn. repeat split; auto.
  - intros c [<-|[]]. cbn. now rewrite shown_not_risky.
  - intros i. unfold risky. apply not_true_is_false. rewrite existsb_exists. intros ([a b] & I & E).
    apply W in I. apply andb_prop in E. destruct E as [E _]. cbn in E, I. now rewrite E in I.
Qed.

Lemma fenced_scan_secure s tbl cs b : fence = b -> secure (Scan s tbl fence cs) ->
  secure (if b then Filter (Scan s tbl true cs) [] else Scan s tbl false cs).
Proof. intros <- (_ & W). destruct fence eqn:F; cbn; rewrite ?F; repeat split; try apply W; apply conditions_nil. Qed.

Theorem governed_secure o f : well_formed_from f = true -> secure (governed_from o f).
Proof.
  revert o; induction f; intros o W; cbn [well_formed_from governed_from] in *; cbn [secure].
  - exact (fenced_scan_secure _ _ _ fence eq_refl (scan_secure s tbl W)).
  - apply andb_prop in W. destruct W. auto using governed_conditions, conditions_nil.
  - apply andb_prop in W. destruct W as [W R]. apply andb_prop in W. destruct W as [W L].
    split; [split; auto using governed_conditions|]. intros ->. split.
    + rewrite forallb_forall in R, L. unfold keys_of in R |- *. repeat split.
      * intros i K. destruct (Nat.ltb_spec i (length (all_shown (has_outer f) (sources f) :: keys))) as [I|I].
        -- specialize (R _ (in_indexed _ _ 0 (EConst None) I)). cbn [fst snd plus] in R. now rewrite K in R.
        -- now rewrite nth_overflow.
      * intros k s' [<-|I] M; cbn [nth]; apply all_shown_tests; [now apply all_shown_mentions in M|].
        specialize (L _ I). rewrite forallb_forall in L. specialize (L _ (mentions_sources _ _ M)).
        apply existsb_exists in L. destruct L as (x & I' & E). apply Nat.eqb_eq in E. now subst.
      * discriminate.
    + intros F c I. apply in_map_iff in I. destruct I as (b & <- & _). unfold governed_having.
      destruct (keys_only _ _ b) eqn:B; [apply having_guarded; unfold governed_condition; rewrite F; apply guard_guarded|].
      destruct (total b) eqn:T; [rewrite andb_false_r; apply having_guarded; intros s' _; now apply total_safe|].
      destruct (composite b) eqn:K; cbn [andb negb].
      * intros N. exfalso. apply not_true_iff_false in B. apply B. clear B. unfold keys_only in *. rewrite forallb_forall in *. intros x X. apply N. cbn.
        rewrite app_nil_r. auto.
      * destruct b; try discriminate; intros N; congruence.
Qed.

Lemma run_ext p d1 d2 : (forall tbl, d1 tbl = d2 tbl) -> forall env, run p d1 env = run p d2 env.
Proof.
  intros E; induction p; intros env; cbn [run]; rewrite ?E, ?IHp; auto.
  destruct m; rewrite ?IHp1, ?IHp2; auto. destruct (run p1 d2 env); cbn; auto.
  erewrite mapM_ext; [reflexivity|]. intros t. now rewrite IHp2.
Qed.

Lemma stripped_scanned pol d tbl : stripped (scanned pol d) tbl = map (cons true_) (visible pol d tbl).
Proof.
  unfold stripped, scanned, visible. induction (d tbl) as [|r rows IH]; cbn; auto.
  destruct (filter_of pol tbl r); cbn; now rewrite IH.
Qed.

End Governed.

(** The columns of grouped sources whose definition may raise. *)
Fixpoint risks_of (f : from) : list (nat * nat) :=
  match f with
  | QTable _ _ => []
  | QJoin _ l r _ => risks_of l ++ risks_of r
  | QGroup s all keys _ f _ _ =>
      let inner := risks_of f in
      map (fun ik => (s, fst ik)) (filter (fun ik => negb (total inner (snd ik))) (indexed 0 (keys_of all keys f))) ++ inner
  end.

(** The governed query that is sent to the database. *)
Definition governed_query (fence : bool) (keep : expr -> bool) (f : from) (wh : list expr) : plan :=
  governed (risks_of f) fence keep f wh.

(** Two databases that agree on what the caller may see. *)
Definition agree (pol : policy) (d1 d2 : database) : Prop := forall tbl, visible pol d1 tbl = visible pol d2 tbl.

Theorem guard_is_secure : forall pol d1 d2 fence keep f wh outs p,
  well_formed (risks_of f) f = true ->
  agree pol d1 d2 ->
  allowed (governed_query fence keep f wh) p ->
  outcome p outs (scanned pol d1) = outcome p outs (scanned pol d2).
Proof.
  intros pol d1 d2 fence keep f wh outs p W A P. apply andb_prop in W. destruct W as [R W].
  assert (secure (risks_of f) fence p) as S.
  { eapply allowed_secure; eauto. cbn. split; auto using governed_secure, governed_conditions. }
  unfold outcome. rewrite (run_stripped _ _ p (scanned pol d1) S), (run_stripped _ _ p (scanned pol d2) S).
  rewrite (run_ext p _ (stripped (scanned pol d2))); auto.
  intros tbl. rewrite !stripped_scanned. f_equal. apply A.
Qed.
Print Assumptions guard_is_secure.

(** The copy of a database that has only what the caller may see. *)
Definition copy (pol : policy) (d : database) : database := fun tbl => map (cons true_) (visible pol d tbl).

(** Every allowed plan has the same outcome on the database as on the copy. *)
Theorem as_on_the_copy : forall pol d fence keep f wh outs p,
  well_formed (risks_of f) f = true ->
  allowed (governed_query fence keep f wh) p ->
  outcome p outs (scanned pol d) = outcome p outs (copy pol d).
Proof.
  intros pol d fence keep f wh outs p W P. apply andb_prop in W. destruct W as [R W].
  assert (secure (risks_of f) fence p) as S.
  { eapply allowed_secure; eauto. cbn. split; auto using governed_secure, governed_conditions. }
  unfold outcome. rewrite (run_stripped _ _ p (scanned pol d) S). rewrite (run_ext p _ (copy pol d)); auto.
  apply stripped_scanned.
Qed.

(** On visible rows, and on those that a left join has padded, a guard changes nothing. *)
Theorem guard_on_visible : forall risks outer t c,
  (forall s, In s (sources_of c) -> column t s 0 = true_ \/ outer = true /\ column t s 0 = None) ->
  eval t (guard risks outer c) = eval t c.
Proof.
  intros risks o t c H. unfold guard. destruct (total risks c); auto. cbn.
  assert (eval t (all_shown o (sources_of c)) = Ok true_) as ->; auto.
  induction (sources_of c) as [|s ss IH]; auto. cbn [all_shown eval]. specialize (IH (fun s I => H s (or_intror I))).
  destruct (H s (or_introl eq_refl)) as [E|[-> E]]; [destruct o|]; cbn; rewrite E; cbn; now rewrite IH.
Qed.
Print Assumptions as_on_the_copy.
Print Assumptions guard_on_visible.
