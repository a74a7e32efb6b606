(* Runs the model that Coq extracts (docs/formal/Extract.v) on worlds and queries from standard input, and prints the
   outcomes of some of the plans that it allows. One request a line, as words in prefix notation; one answer a line
   for each query. What is decided here: which of the allowed plans are tried, and in which order tables are read. *)
open Model

let rec nat_of i = if i = 0 then O else S (nat_of (i - 1))
let rec int_of_nat = function O -> 0 | S n -> 1 + int_of_nat n
let rec positive_of i =
  if i = 1 then XH else if i land 1 = 1 then XI (positive_of (i lsr 1)) else XO (positive_of (i lsr 1))
let z_of i = if i = 0 then Z0 else if i > 0 then Zpos (positive_of i) else Zneg (positive_of (-i))
let rec int_of_positive = function XH -> 1 | XO p -> 2 * int_of_positive p | XI p -> (2 * int_of_positive p) + 1
let int_of_z = function Z0 -> 0 | Zpos p -> int_of_positive p | Zneg p -> -int_of_positive p

(* ---- reading *)

let words : string list ref = ref []
let word () = match !words with [] -> failwith "a request is too short" | w :: ws -> words := ws; w
let int () = int_of_string (word ())
let nat () = nat_of (int ())
let list read = List.init (int ()) (fun _ -> ()) |> List.map (fun () -> read ())
let value_of = function "_" -> None | w -> Some (z_of (int_of_string w))

let rec expr () =
  let two make = let a = expr () in let b = expr () in make a b in
  match word () with
  | "c" -> let s = nat () in let c = nat () in ECol (s, c)
  | "v" -> EConst (value_of (word ()))
  | "+" -> two (fun a b -> EArith (Add, a, b))
  | "-" -> two (fun a b -> EArith (Sub, a, b))
  | "*" -> two (fun a b -> EArith (Mul, a, b))
  | "/" -> two (fun a b -> EArith (Div, a, b))
  | "=" -> two (fun a b -> ECmp (CEq, a, b))
  | "<>" -> two (fun a b -> ECmp (CNe, a, b))
  | "<" -> two (fun a b -> ECmp (CLt, a, b))
  | "<=" -> two (fun a b -> ECmp (CLe, a, b))
  | "and" -> two (fun a b -> EAnd (a, b))
  | "or" -> two (fun a b -> EOr (a, b))
  | "not" -> ENot (expr ())
  | "null" -> EIsNull (expr ())
  | "notfalse" -> EIsNotFalse (expr ())
  | "case" -> let w = expr () in two (fun a b -> ECase (w, a, b))
  | w -> failwith ("no expression: " ^ w)

let aggregate () =
  match word () with
  | "count" -> Count
  | "countof" -> CountOf (expr ())
  | "sum" -> Sum (expr ())
  | "min" -> Min (expr ())
  | "max" -> Max (expr ())
  | w -> failwith ("no aggregate: " ^ w)

let rec from () =
  match word () with
  | "table" -> let s = nat () in let tbl = nat () in QTable (s, tbl)
  | "join" | "left" as k ->
      let l = from () in
      let r = from () in
      QJoin ((if k = "left" then Left else Inner), l, r, list expr)
  | "group" ->
      let s = nat () in
      let all = int () = 1 in
      let keys = list expr in
      let aggs = list aggregate in
      let f = from () in
      let wh = list expr in
      QGroup (s, all, keys, aggs, f, wh, list expr)
  | w -> failwith ("no source: " ^ w)

(* A table: its filter and the masks of its columns, as expressions on the stored row, source 0; and its rows. *)
let table () =
  let filter = expr () in
  let masks = list expr in
  (filter, masks, list (fun () -> list (fun () -> value_of (word ()))))

(* ---- worlds *)

let total_value row e = match eval [ (O, row) ] e with Ok v -> v | Raise _ -> failwith "a filter or mask raises"

let policy tables =
  let of_table tbl = List.nth tables (int_of_nat tbl) in
  {
    filter_of = (fun tbl row -> let f, _, _ = of_table tbl in is_true (total_value row f));
    mask_of = (fun tbl row -> let _, masks, _ = of_table tbl in List.map (total_value row) masks);
  }

let shuffled l = List.map (fun x -> (Random.bits (), x)) l |> List.sort compare |> List.map (fun (_, x) -> x)

let scans tables order =
  let rows = Array.of_list (List.map (fun (_, _, rows) -> order rows) tables) in
  let results = Array.mapi (fun i _ -> scanned (policy tables) (fun _ -> rows.(i)) (nat_of i)) rows in
  fun tbl -> results.(int_of_nat tbl)

(* ---- outcomes *)

let printed = function
  | Raise DivisionByZero -> "!22012"
  | Raise OutOfRange -> "!22003"
  | Ok rows ->
      let cell = function None -> "_" | Some z -> string_of_int (int_of_z z) in
      List.map (fun r -> String.concat "," (List.map cell r)) rows |> List.sort compare |> String.concat ";"

(* How far down conditions are in a plan. Postgres pushes them down as far as it can. *)
let rec size = function
  | ECol _ | EConst _ -> 1
  | EArith (_, a, b) | ECmp (_, a, b) | EAnd (a, b) | EOr (a, b) -> 1 + size a + size b
  | ENot a | EIsNull a | EIsNotFalse a -> 1 + size a
  | ECase (w, a, b) -> 1 + size w + size a + size b
let rec depth at p =
  let all cs = List.fold_left (fun n c -> n + (100 * at) - size c) 0 cs in
  match p with
  | Scan (_, _, _, cs) -> all cs
  | Join (_, _, l, r, on, cs) -> all on + all cs + depth (at + 1) l + depth (at + 1) r
  | Group (_, _, _, _, p, cs) | Filter (p, cs) -> all cs + depth (at + 1) p
  | Arrange (_, p) | Probe (_, p) -> depth at p

let pick l = List.nth l (Random.int (List.length l))

(* A random move; if [down], one that pushes a condition down if there is one. *)
let moved down p =
  match moves p with
  | [] -> p
  | next ->
      let lower = if down then List.filter (fun q -> depth 0 q > depth 0 p) next else [] in
      pick (if lower = [] then next else lower)

(* Outcomes of [budget] plans on random walks from the governed query. Behind `~` an error that a plan that fails
   raises on some of the rows: Postgres passes rows on one by one, the model list by list, so that of several errors
   another may come first. *)
let explored tables fence keep f wh outs budget =
  let start = governed_query fence keep f wh in
  let found = Hashtbl.create 4 in
  let tried = ref 0 in
  let try_plan d p =
    incr tried;
    let o = outcome p outs d in
    Hashtbl.replace found (printed o) ();
    match o with
    | Ok _ -> ()
    | Raise _ -> (
        match outcome p outs (scans tables (List.filter (fun _ -> Random.bool ()))) with
        | Ok _ -> ()
        | o -> Hashtbl.replace found ("~" ^ printed o) ())
  in
  try_plan (scans tables (fun x -> x)) start;
  while !tried < budget do
    let d = scans tables shuffled in
    let p = ref start in
    let bias = Random.int 10 in
    let length = 2 + Random.int (if budget > 1000 then 45 else 20) in
    for i = 1 to length do
      p := moved (Random.int 10 < bias) !p;
      if i = length || i mod 4 = 0 then try_plan d !p
    done
  done;
  Hashtbl.fold (fun o () os -> o :: os) found [] |> List.sort compare

let sources_in e = List.map int_of_nat (sources_of e) |> List.sort_uniq compare

(* Equalities of two sources, which a fence keeps. *)
let equates = function ECmp (CEq, a, b) as e -> sources_in a <> [] && sources_in b <> [] && List.length (sources_in e) > 1 | _ -> false

let () =
  let world = ref [] in
  try
    while true do
      words := String.split_on_char ' ' (input_line stdin);
      match word () with
      | "world" -> world := list table
      | "query" ->
          let id = word () in
          Random.init (int ());
          let budget = int () in
          let fence = int () = 1 in
          let f = from () in
          let wh = list expr in
          let outs = list expr in
          if not (well_formed (risks_of f) f) then print_endline (id ^ " not-well-formed")
          else print_endline (id ^ " " ^ String.concat "|" (explored !world fence equates f wh outs budget));
          flush stdout
      | w -> failwith ("no request: " ^ w)
    done
  with End_of_file -> ()
