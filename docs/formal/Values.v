(** Values, three-valued logic, and expressions that may raise an error. *)
From Coq Require Import ZArith List Bool Lia Arith.
Import ListNotations.

(** NULL is [None]. A boolean is 1 or 0; NULL is its third value. *)
Definition value := option Z.
Definition true_ : value := Some 1%Z.
Definition false_ : value := Some 0%Z.

Inductive error := DivisionByZero | OutOfRange.

Inductive res (A : Type) := Ok (a : A) | Raise (e : error).
Arguments Ok {A} a.
Arguments Raise {A} e.

Definition bind {A B} (r : res A) (f : A -> res B) : res B :=
  match r with Ok a => f a | Raise e => Raise e end.
Notation "'do' x <- r ; k" := (bind r (fun x => k)) (at level 200, x name, r at level 100, k at level 200).

Fixpoint mapM {A B} (f : A -> res B) (l : list A) : res (list B) :=
  match l with
  | [] => Ok []
  | a :: l => do b <- f a; do bs <- mapM f l; Ok (b :: bs)
  end.

(** Truth of a value: unknown for NULL. *)
Definition truth (v : value) : option bool := option_map (fun z => negb (Z.eqb z 0)) v.
Definition of_truth (b : option bool) : value := option_map (fun b : bool => if b then 1%Z else 0%Z) b.
Definition is_true (v : value) : bool := match truth v with Some true => true | _ => false end.

Definition and3 (a b : option bool) : option bool :=
  match a, b with
  | Some false, _ | _, Some false => Some false
  | Some true, Some true => Some true
  | _, _ => None
  end.
Definition or3 (a b : option bool) : option bool :=
  match a, b with
  | Some true, _ | _, Some true => Some true
  | Some false, Some false => Some false
  | _, _ => None
  end.

Inductive arith := Add | Sub | Mul | Div.
Inductive compare := CEq | CNe | CLt | CLe.

(** [ECol s c] is column [c] of source [s]. Column 0 of every source is its visibility, "#shown". *)
Inductive expr :=
| ECol (s c : nat)
| EConst (v : value)
| EArith (op : arith) (a b : expr)
| ECmp (op : compare) (a b : expr)
| EAnd (a b : expr)
| EOr (a b : expr)
| ENot (a : expr)
| EIsNull (a : expr)
| EIsNotFalse (a : expr)
| ECase (w t e : expr).

(** A row that an expression is evaluated on: for each source of a join its own row, the newest first. A source that
    a left join has padded is absent; its columns are NULL. *)
Definition row := list value.
Definition tuple := list (nat * row).

Fixpoint lookup (t : tuple) (s : nat) : row :=
  match t with
  | [] => []
  | (s', r) :: t => if Nat.eqb s' s then r else lookup t s
  end.
Definition column (t : tuple) (s c : nat) : value := nth c (lookup t s) None.

(** Arithmetic of int4. *)
Definition checked (z : Z) : res value :=
  if (Z.leb (-2147483648) z && Z.leb z 2147483647)%bool then Ok (Some z) else Raise OutOfRange.
Definition compute (op : arith) (a b : value) : res value :=
  match a, b with
  | Some x, Some y =>
      match op with
      | Add => checked (x + y)
      | Sub => checked (x - y)
      | Mul => checked (x * y)
      | Div => if Z.eqb y 0 then Raise DivisionByZero else checked (Z.quot x y)
      end
  | _, _ => Ok None
  end.
Definition compared (op : compare) (a b : value) : value :=
  match a, b with
  | Some x, Some y =>
      of_truth (Some match op with
        | CEq => Z.eqb x y | CNe => negb (Z.eqb x y) | CLt => Z.ltb x y | CLe => Z.leb x y
        end)
  | _, _ => None
  end.

(** AND and OR stop at the first operand that decides; CASE evaluates its test first, then one branch only. *)
Fixpoint eval (t : tuple) (e : expr) : res value :=
  match e with
  | ECol s c => Ok (column t s c)
  | EConst v => Ok v
  | EArith op a b => do x <- eval t a; do y <- eval t b; compute op x y
  | ECmp op a b => do x <- eval t a; do y <- eval t b; Ok (compared op x y)
  | EAnd a b =>
      do x <- eval t a;
      match truth x with
      | Some false => Ok false_
      | p => do y <- eval t b; Ok (of_truth (and3 p (truth y)))
      end
  | EOr a b =>
      do x <- eval t a;
      match truth x with
      | Some true => Ok true_
      | p => do y <- eval t b; Ok (of_truth (or3 p (truth y)))
      end
  | ENot a => do x <- eval t a; Ok (of_truth (option_map negb (truth x)))
  | EIsNull a => do x <- eval t a; Ok (of_truth (Some (match x with None => true | _ => false end)))
  | EIsNotFalse a => do x <- eval t a; Ok (of_truth (Some (match truth x with Some false => false | _ => true end)))
  | ECase w a b => do x <- eval t w; if is_true x then eval t a else eval t b
  end.

(** Conjuncts, evaluated in order; the first that is not true ends it. *)
Fixpoint holds (t : tuple) (cs : list expr) : res bool :=
  match cs with
  | [] => Ok true
  | c :: cs => do v <- eval t c; if is_true v then holds t cs else Ok false
  end.

Fixpoint select (cs : list expr) (ts : list tuple) : res (list tuple) :=
  match ts with
  | [] => Ok []
  | t :: ts => do b <- holds t cs; do rest <- select cs ts; Ok (if b then t :: rest else rest)
  end.

(** The expression with the columns of source [s] replaced by [defs], and other columns of [s] by NULL. *)
Fixpoint subst (s : nat) (defs : list expr) (e : expr) : expr :=
  match e with
  | ECol s' c => if Nat.eqb s' s then nth c defs (EConst None) else ECol s' c
  | EConst v => EConst v
  | EArith op a b => EArith op (subst s defs a) (subst s defs b)
  | ECmp op a b => ECmp op (subst s defs a) (subst s defs b)
  | EAnd a b => EAnd (subst s defs a) (subst s defs b)
  | EOr a b => EOr (subst s defs a) (subst s defs b)
  | ENot a => ENot (subst s defs a)
  | EIsNull a => EIsNull (subst s defs a)
  | EIsNotFalse a => EIsNotFalse (subst s defs a)
  | ECase w a b => ECase (subst s defs w) (subst s defs a) (subst s defs b)
  end.

(** The columns that an expression reads. *)
Fixpoint reads (e : expr) : list (nat * nat) :=
  match e with
  | ECol s c => [(s, c)]
  | EConst _ => []
  | EArith _ a b | ECmp _ a b | EAnd a b | EOr a b => reads a ++ reads b
  | ENot a | EIsNull a | EIsNotFalse a => reads a
  | ECase w a b => reads w ++ reads a ++ reads b
  end.
Definition mentions (s : nat) (e : expr) : bool := existsb (fun x => Nat.eqb (fst x) s) (reads e).
Definition sources_of (e : expr) : list nat := nodup Nat.eq_dec (map fst (reads e)).
