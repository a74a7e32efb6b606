import type { Dice } from '../proof/oracle/dice.js';

/**
 * Random tables, policies and queries within the model of docs/formal, each as OSL-SQL and as words that
 * `explore.ml` reads. A column is named by its source and its place in the model: place 0 is the visibility of the
 * source's row, which callers cannot name.
 */
export type Expr =
  | { readonly kind: 'column'; readonly source: number; readonly place: number }
  | { readonly kind: 'value'; readonly value: number }
  | { readonly kind: 'null' }
  | { readonly kind: 'binary'; readonly operator: Operator; readonly left: Expr; readonly right: Expr }
  | { readonly kind: 'unary'; readonly operator: 'not' | 'null' | 'notfalse'; readonly arg: Expr }
  | { readonly kind: 'case'; readonly when: Expr; readonly result: Expr; readonly otherwise: Expr };

type Operator = '+' | '-' | '*' | '/' | '=' | '<>' | '<' | '<=' | 'and' | 'or';

interface Aggregate {
  readonly name: 'count' | 'countof' | 'sum' | 'min' | 'max';
  readonly arg: Expr;
}

type From =
  | { readonly kind: 'table'; readonly source: number; readonly table: number }
  | {
      readonly kind: 'join' | 'left';
      readonly left: From;
      readonly right: From;
      readonly on: readonly Expr[];
    }
  | Grouping;

interface Grouping {
  readonly kind: 'group';
  readonly source: number;
  readonly keys: readonly Expr[];
  readonly aggregates: readonly Aggregate[];
  readonly from: From;
  readonly where: readonly Expr[];
  readonly having: readonly Expr[];
}

export interface Query {
  readonly from: From;
  readonly where: readonly Expr[];
  readonly outputs: readonly Expr[];
  /** True if the statement's own level is the grouping that `from` is. */
  readonly grouped: boolean;
}

export interface Table {
  readonly rows: readonly (readonly (number | null)[])[];
  /** Row filters of two grants; the second also shows column `y` in the clear. Null: the grant shows every row. */
  readonly filters: readonly [Expr | null, Expr | null] | readonly [Expr | null];
}

export const COLUMNS = ['id', 'k', 'x', 'y', 'h'];
const MASKED = COLUMNS.indexOf('y');

// ---------------------------------------------------------------- worlds

const column = (source: number, place: number): Expr => ({ kind: 'column', source, place });
const value = (n: number): Expr => ({ kind: 'value', value: n });
const binary = (operator: Operator, left: Expr, right: Expr): Expr => ({
  kind: 'binary',
  operator,
  left,
  right,
});
const unary = (operator: 'not' | 'null' | 'notfalse', arg: Expr): Expr => ({ kind: 'unary', operator, arg });

/** Number on which `100 / (column - 57)` fails; more frequent in hidden rows. */
const POISON = 57;

/** A stored column, in a filter: the row is source 0, without visibility. */
const stored = (name: string): Expr => column(0, COLUMNS.indexOf(name));

/** Filters that Postgres would rather evaluate after a caller's condition are among them. */
const FILTERS: readonly Expr[] = [
  binary('<', value(1), stored('h')),
  binary('=', stored('h'), value(2)),
  [2, 3, 4].map((n) => binary('=', stored('h'), value(n))).reduce((a, b) => binary('or', a, b)),
  binary('and', binary('<', value(1), stored('h')), unary('not', binary('=', stored('k'), value(3)))),
  binary('or', unary('null', stored('h')), binary('<=', value(2), stored('h'))),
];

export function randomTables(dice: Dice): readonly Table[] {
  return dice.times(3, 3, () => {
    const filter = (): Expr | null => (dice.chance(0.08) ? null : dice.of(FILTERS));
    const filters = dice.chance(0.4) ? ([filter(), dice.of(FILTERS)] as const) : ([filter()] as const);
    const poison = dice.chance(0.35);
    const rows = dice.times(0, 7, (id) => {
      const h = dice.of([0, 0, 1, 2, 2, 3, 4, null]);
      const number = (): number | null => {
        if (dice.chance(0.1)) return null;
        if ((h === null || h < 2 || poison) && dice.chance(0.25))
          return dice.of([POISON, POISON, 2_147_483_647]);
        return dice.of([0, 1, 2, 3, 5, -4]);
      };
      return [id, dice.of([1, 2, 3, 57]), number(), number(), h];
    });
    return { rows, filters };
  });
}

// ---------------------------------------------------------------- queries

interface Source {
  readonly source: number;
  /** Places of the columns that hold int4. */
  readonly numbers: readonly number[];
  /** Places of sums and counts, which are only compared. */
  readonly figures: readonly number[];
}

export function randomQuery(dice: Dice): Query {
  return new QueryMaker(dice).query();
}

class QueryMaker {
  readonly #dice: Dice;
  #sources = 0;
  /** Columns in equalities of two sources. */
  readonly #linked = new Set<string>();

  constructor(dice: Dice) {
    this.#dice = dice;
  }

  query(): Query {
    const dice = this.#dice;
    if (dice.chance(0.3)) {
      const [from, made] = this.#grouping(true, false, true);
      const outputs = [...made.numbers, ...made.figures].map((place) => column(made.source, place));
      return { from, where: [], outputs, grouped: true };
    }
    const [from, sources] = this.#from(true, true);
    const where = dice.times(0, 3, () => this.#condition(sources));
    // A column of each source, so that Postgres cannot leave one out; figures that may fail to be computed, too.
    const outputs = sources.flatMap((s) => [
      column(s.source, dice.of(s.numbers.length > 0 ? s.numbers : s.figures)),
      ...s.figures.map((place) => column(s.source, place)),
    ]);
    if (dice.chance(0.25)) outputs.push(this.#number(sources, 2, true));
    return { from, where, outputs, grouped: false };
  }

  #from(groups: boolean, read: boolean): readonly [From, readonly Source[]] {
    const dice = this.#dice;
    let [from, sources]: readonly [From, readonly Source[]] = this.#source(groups, read);
    for (let more = dice.of([0, 0, 1, 1, 2]); more > 0; more--) {
      const [right, added] = this.#source(groups, read);
      const both = [...sources, ...added];
      const on = dice.times(1, 2, () =>
        dice.chance(0.6) ? this.#link(sources, added) : this.#condition(both),
      );
      from = { kind: dice.of(['join', 'join', 'left']), left: from, right, on };
      sources = both;
    }
    return [from, sources];
  }

  /** A comparison of two sources, in most cases an equality; some can fail. */
  #link(left: readonly Source[], right: readonly Source[]): Expr {
    const fails = this.#dice.chance(0.15);
    return this.#equality(this.#number(left, fails ? 1 : 0, fails), this.#number(right, 0, false));
  }

  /**
   * No two equalities of a query share a column, since Postgres would infer a third from them, which the model does
   * not.
   */
  #equality(a: Expr, b: Expr): Expr {
    const used = [...columnsOf(a), ...columnsOf(b)];
    if (used.some((c) => this.#linked.has(c))) return binary('<=', a, b);
    for (const c of used) this.#linked.add(c);
    return binary('=', a, b);
  }

  #source(groups: boolean, read: boolean): readonly [From, readonly Source[]] {
    const dice = this.#dice;
    if (groups && dice.chance(0.2)) {
      const [from, source] = this.#grouping(false, true, read);
      return [from, [source]];
    }
    const source = this.#sources++;
    return [
      { kind: 'table', source, table: dice.upTo(2) },
      [{ source, numbers: COLUMNS.map((_, i) => i + 1), figures: [] }],
    ];
  }

  /**
   * @param keyed without it, the grouping may have no keys
   * @param read true if the statement returns the aggregates; otherwise Postgres may not compute them, so none can fail
   */
  #grouping(groups: boolean, keyed: boolean, read: boolean): readonly [Grouping, Source] {
    const dice = this.#dice;
    const [from, sources] = this.#from(groups && dice.chance(0.5), false);
    const source = this.#sources++;
    const keys = dice.times(keyed || dice.chance(0.8) ? 1 : 0, 2, () =>
      this.#number(sources, 1, dice.chance(0.3)),
    );
    const aggregates = dice.times(1, 2, (): Aggregate => {
      const name = dice.of(['count', 'countof', 'sum', 'min', 'max'] as const);
      return { name, arg: name === 'count' ? value(1) : this.#number(sources, 1, read && dice.chance(0.3)) };
    });
    const place = (i: number): number => keys.length + 1 + i;
    const isNumber = (a: Aggregate): boolean => a.name === 'min' || a.name === 'max';
    const made: Source = {
      source,
      numbers: keys.map((_, i) => i + 1),
      figures: aggregates.map((_, i) => place(i)),
    };
    const where = dice.times(0, 2, () => this.#condition(sources));
    const extremes = aggregates.flatMap((a, i) => (isNumber(a) ? [place(i)] : []));
    const having = dice.times(0, dice.of([0, 1, 2]), () => {
      if (made.numbers.length > 0 && dice.chance(0.5)) return this.#condition([{ ...made, figures: [] }]);
      if (extremes.length > 0 && dice.chance(0.4)) return this.#failing([column(source, dice.of(extremes))]);
      return binary(dice.of(['<', '<=', '<>']), column(source, dice.of(made.figures)), value(dice.upTo(3)));
    });
    return [{ kind: 'group', source, keys, aggregates, from, where, having }, made];
  }

  /** A condition that is no AND: the parts of one are conditions of their own. */
  #condition(sources: readonly Source[]): Expr {
    const dice = this.#dice;
    const figured = sources.flatMap((s) => s.figures.map((place) => column(s.source, place)));
    switch (dice.upTo(9)) {
      case 0:
      case 1: {
        const parts = dice.times(2, 3, () => this.#simple(sources));
        const [a, b, c] = parts;
        // Of equal operands Postgres would leave one out.
        if (
          a === undefined ||
          b === undefined ||
          new Set(parts.map((x) => JSON.stringify(x))).size < parts.length
        )
          return this.#simple(sources);
        return binary('or', c === undefined ? a : binary('and', a, c), b);
      }
      case 2:
        return unary('not', this.#simple(sources));
      case 3:
        return unary('notfalse', this.#simple(sources));
      case 4:
        return figured.length === 0
          ? this.#simple(sources)
          : binary(dice.of(['<', '<=', '<>']), dice.of(figured), value(dice.upTo(4)));
      default:
        return this.#simple(sources);
    }
  }

  #simple(sources: readonly Source[]): Expr {
    const dice = this.#dice;
    const fails = dice.chance(0.5);
    if (fails && dice.chance(0.5)) return this.#failing([this.#column(sources)]);
    // Wrapped, a test for NULL makes no anti-join of a left join, which would stop early.
    if (dice.chance(0.12)) return unary('notfalse', unary('null', this.#number(sources, 1, fails)));
    const operator = dice.of(['=', '<>', '<', '<='] as const);
    const [a, b] = [this.#number(sources, 1, fails), this.#number(sources, dice.upTo(1), fails, true)];
    return operator === '=' ? this.#equality(a, b) : binary(operator, a, b);
  }

  #failing(columns: readonly Expr[]): Expr {
    const dice = this.#dice;
    const divisor = binary('-', dice.of(columns), value(POISON));
    return binary(dice.of(['<', '<=', '<>']), binary('/', value(100), divisor), value(dice.of([0, 2, 50])));
  }

  #column(sources: readonly Source[]): Expr {
    const numbered = sources.filter((s) => s.numbers.length > 0);
    const { source, numbers } = this.#dice.of(numbered);
    return column(source, this.#dice.of(numbers));
  }

  /**
   * @param fails true if it may raise
   * @param constant true if it may be a number alone; elsewhere each operator has a column below it, since Postgres
   *   computes constants when it plans
   */
  #number(sources: readonly Source[], depth: number, fails: boolean, constant = false): Expr {
    const dice = this.#dice;
    if (constant && dice.chance(0.5)) return value(dice.of([0, 1, 2, 3]));
    if (depth === 0 || !fails) {
      if (depth > 0 && dice.chance(0.15)) {
        const when = binary('<', this.#column(sources), value(dice.upTo(3)));
        return { kind: 'case', when, result: this.#column(sources), otherwise: { kind: 'null' } };
      }
      return this.#column(sources);
    }
    if (dice.chance(0.2)) {
      const when = binary('<>', this.#column(sources), value(dice.of([0, POISON])));
      const result = this.#number(sources, depth - 1, true);
      return {
        kind: 'case',
        when,
        result: binary('/', value(100), result),
        otherwise: this.#column(sources),
      };
    }
    const left = this.#number(sources, depth - 1, true);
    if (dice.chance(0.4)) return binary('/', value(100), binary('-', left, value(dice.of([POISON, 3]))));
    return binary(dice.of(['+', '-', '*', '/']), left, this.#column(sources));
  }
}

function columnsOf(e: Expr): readonly string[] {
  switch (e.kind) {
    case 'column':
      return [keyOf(e.source, e.place)];
    case 'value':
    case 'null':
      return [];
    case 'binary':
      return [...columnsOf(e.left), ...columnsOf(e.right)];
    case 'unary':
      return columnsOf(e.arg);
    case 'case':
      return [...columnsOf(e.when), ...columnsOf(e.result), ...columnsOf(e.otherwise)];
  }
}

// ---------------------------------------------------------------- as OSL-SQL

/** Text of each column of a level's sources. */
type Names = ReadonlyMap<string, string>;

const keyOf = (source: number, place: number): string => `${source}.${place}`;

export function exprSql(e: Expr, names: Names): string {
  switch (e.kind) {
    case 'column': {
      const name = names.get(keyOf(e.source, e.place));
      if (name === undefined) throw new Error(`no column ${e.place} of source ${e.source}`);
      return name;
    }
    case 'value':
      return e.value < 0 ? `(${e.value})` : String(e.value);
    case 'null':
      return 'null::int4';
    case 'binary':
      return `(${exprSql(e.left, names)} ${e.operator} ${exprSql(e.right, names)})`;
    case 'unary': {
      const arg = exprSql(e.arg, names);
      return e.operator === 'not'
        ? `(not ${arg})`
        : `(${arg} is ${e.operator === 'null' ? 'null' : 'not false'})`;
    }
    case 'case':
      return `case when ${exprSql(e.when, names)} then ${exprSql(e.result, names)} else ${exprSql(e.otherwise, names)} end`;
  }
}

export function querySql(query: Query): string {
  const { from } = query;
  if (query.grouped && from.kind === 'group') return groupingSql(from);
  const names = namesOf(from);
  const outputs = query.outputs.map((o, i) => `${exprSql(o, names)} as o${i + 1}`).join(', ');
  return `select ${outputs} from ${fromSql(from, names)}${clause(' where ', query.where, names)}`;
}

function clause(word: string, conditions: readonly Expr[], names: Names): string {
  return conditions.length === 0 ? '' : word + conditions.map((c) => exprSql(c, names)).join(' and ');
}

function groupingSql({ source, keys, aggregates, from, where, having }: Grouping): string {
  const names = namesOf(from);
  const keyTexts = keys.map((k) => exprSql(k, names));
  const texts = [...keyTexts, ...aggregates.map((a) => aggregateSql(a, names))];
  const own = new Map(texts.map((text, i) => [keyOf(source, i + 1), text]));
  const list = texts.map((text, i) => `${text} as c${i + 1}`).join(', ');
  const by = keys.length === 0 ? '' : ` group by ${keyTexts.join(', ')}`;
  return `select ${list} from ${fromSql(from, names)}${clause(' where ', where, names)}${by}${clause(' having ', having, own)}`;
}

function aggregateSql({ name, arg }: Aggregate, names: Names): string {
  if (name === 'count') return 'count(*)';
  return `${name === 'countof' ? 'count' : name}(${exprSql(arg, names)})`;
}

function fromSql(from: From, names: Names): string {
  if (from.kind === 'table') return `t${from.table} as a${from.source}`;
  if (from.kind === 'group') return `(${groupingSql(from)}) as a${from.source}`;
  const word = from.kind === 'left' ? 'left join' : 'join';
  return `${fromSql(from.left, names)} ${word} ${fromSql(from.right, names)}${clause(' on ', from.on, names)}`;
}

function namesOf(from: From): Names {
  if (from.kind === 'table')
    return new Map(COLUMNS.map((name, i) => [keyOf(from.source, i + 1), `a${from.source}.${name}`]));
  if (from.kind === 'group') {
    const width = from.keys.length + from.aggregates.length;
    return new Map(
      Array.from({ length: width }, (_, i) => [keyOf(from.source, i + 1), `a${from.source}.c${i + 1}`]),
    );
  }
  return new Map([...namesOf(from.left), ...namesOf(from.right)]);
}

/** Names of the stored columns, for filters. */
export const STORED: Names = new Map(COLUMNS.map((name, i) => [keyOf(0, i), name]));

// ---------------------------------------------------------------- as words for the model

function exprWords(e: Expr): string {
  switch (e.kind) {
    case 'column':
      return `c ${e.source} ${e.place}`;
    case 'value':
      return `v ${e.value}`;
    case 'null':
      return 'v _';
    case 'binary':
      return `${e.operator} ${exprWords(e.left)} ${exprWords(e.right)}`;
    case 'unary':
      return `${e.operator} ${exprWords(e.arg)}`;
    case 'case':
      return `case ${exprWords(e.when)} ${exprWords(e.result)} ${exprWords(e.otherwise)}`;
  }
}

function listWords<T>(items: readonly T[], words: (item: T) => string): string {
  return [String(items.length), ...items.map(words)].join(' ');
}

function fromWords(from: From): string {
  switch (from.kind) {
    case 'table':
      return `table ${from.source} ${from.table}`;
    case 'join':
    case 'left':
      return `${from.kind} ${fromWords(from.left)} ${fromWords(from.right)} ${listWords(from.on, exprWords)}`;
    case 'group': {
      const aggregates = listWords(from.aggregates, (a) =>
        a.name === 'count' ? 'count' : `${a.name} ${exprWords(a.arg)}`,
      );
      const head = `group ${from.source} ${from.keys.length === 0 ? 1 : 0} ${listWords(from.keys, exprWords)}`;
      const rest = `${listWords(from.where, exprWords)} ${listWords(from.having, exprWords)}`;
      return `${head} ${aggregates} ${fromWords(from.from)} ${rest}`;
    }
  }
}

export function queryWords({ from, where, outputs }: Query): string {
  return `${fromWords(from)} ${listWords(where, exprWords)} ${listWords(outputs, exprWords)}`;
}

const TRUE: Expr = { kind: 'value', value: 1 };

/** A table's filter, the masks of its columns, and its rows. */
export function tableWords({ rows, filters }: Table): string {
  const [first, second] = [filters[0] ?? TRUE, filters[1] === undefined ? null : (filters[1] ?? TRUE)];
  const filter = second === null ? first : binary('or', first, second);
  const masks = COLUMNS.map((_, i): Expr => {
    const clear = column(0, i);
    if (i !== MASKED || second === null) return clear;
    return { kind: 'case', when: second, result: clear, otherwise: { kind: 'null' } };
  });
  const cells = listWords(rows, (row) => listWords(row, (cell) => (cell === null ? '_' : String(cell))));
  return `${exprWords(filter)} ${listWords(masks, exprWords)} ${cells}`;
}
