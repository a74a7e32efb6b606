import type { TypeName } from 'osl-compiler';
import type { Dice } from './dice.js';
import { Expressions, type Term } from './expressions.js';
import { visibleColumns, visibleComputed, type World } from './world.js';

/**
 * Random questions about a world, as text with marks: `‹a.k›` is a sealed column where it is joined on, `‹*a›` is
 * `a.*`. The caller's text and the copy's text differ in the marks only.
 */
export interface Question {
  readonly text: string;
}

/** A FROM item: its columns, and whether the caller can tell its rows apart by a key that is clear. */
interface Source {
  readonly alias: string;
  readonly columns: readonly Term[];
  readonly keyed: boolean;
  /** The table behind it, where it is one. */
  readonly table: string | null;
}

interface Body {
  readonly sql: string;
  readonly types: readonly TypeName[];
  /** Which outputs are sealed columns passed through. */
  readonly sealed: readonly boolean[];
}

/** @param bold also picks rows by order where the caller has no key to order by, which the copies could not follow */
export function randomQuestion(world: World, dice: Dice, bold = false): Question {
  const sighted = world.tables.some((t) => visibleColumns(t).length > 0);
  return { text: sighted ? new Questions(world, dice, bold).statement().sql : 'select 1' };
}

/** The text as the caller sends it. */
export function asAsked(question: Question): string {
  return question.text.replace(/‹\*(\w+)›/g, '$1.*').replace(/‹([\w.]+)›/g, '$1');
}

/** The text as the copies are asked. */
export function asCopied(question: Question, world: World): string {
  const listed = (alias: string): string => {
    const name = new RegExp(`(\\w+) as ${alias}\\b`).exec(question.text)?.[1] ?? '';
    const table = world.tables.find((t) => t.name === name);
    if (table === undefined) return '';
    const columns = visibleColumns(table).map((v) => `${alias}.${v.column.name}`);
    return [...columns, ...visibleComputed(table, world).map((c) => `${alias}.${c.name}`)].join(', ');
  };
  return question.text
    .replace(/‹\*(\w+)›/g, (_, alias: string) => listed(alias))
    .replace(/‹([\w.]+)›/g, (_, column: string) => (column.includes('.o') ? column : `${column}_key`));
}

class Questions {
  readonly #world: World;
  readonly #dice: Dice;
  #aliases = 0;
  #tables: Source[] = [];

  readonly #bold: boolean;

  constructor(world: World, dice: Dice, bold: boolean) {
    this.#world = world;
    this.#dice = dice;
    this.#bold = bold;
  }

  statement(): Body {
    const dice = this.#dice;
    if (!dice.chance(0.12)) return this.#query(2);
    const inner = this.#query(1);
    const alias = this.#alias('w');
    this.#tables.push(this.#derived(alias, inner));
    const outer = this.#query(1);
    const how = dice.of(['', '', 'materialized ', 'not materialized ']);
    return { ...outer, sql: `with ${alias} as ${how}(${inner.sql}) ${outer.sql}` };
  }

  #alias(letter: string): string {
    return `${letter}${++this.#aliases}`;
  }

  #derived(alias: string, body: Body): Source {
    const columns = body.types.map((type, i) => ({
      sql: `${alias}.o${i + 1}`,
      type,
      sealed: body.sealed[i] === true,
    }));
    return { alias, columns, keyed: false, table: null };
  }

  #query(depth: number): Body {
    return this.#dice.chance(0.16) ? this.#setOperation(depth) : this.#select(depth);
  }

  #setOperation(depth: number): Body {
    const dice = this.#dice;
    const types = dice.times(1, 3, () => dice.of(COMMON));
    const [left, right] = [this.#operand(types), this.#operand(types)];
    const operator = dice.of(['union', 'union all', 'intersect', 'intersect all', 'except', 'except all']);
    const tail = depth > 1 && dice.chance(0.4) ? ` order by 1 limit ${dice.upTo(6)}` : '';
    const sealed = types.map(() => false);
    return { sql: `${left} ${operator} ${right}${tail}`, types, sealed };
  }

  #operand(types: readonly TypeName[]): string {
    if (this.#dice.chance(0.2)) return this.#rowsOf(types);
    const source = this.#table();
    const terms = new Expressions(this.#dice, source.columns);
    const outputs = types.map((t, i) => `${terms.value(t, 1)} as o${i + 1}`);
    const where = this.#dice.chance(0.5) ? ` where ${this.#semiJoinOr(source, terms)}` : '';
    return `(select ${outputs.join(', ')} from ${source.table} as ${source.alias}${where})`;
  }

  #semiJoinOr(source: Source, terms: Expressions): string {
    return (this.#dice.chance(0.4) ? this.#semiJoin([source]) : null) ?? terms.predicate(2);
  }

  #rowsOf(types: readonly TypeName[]): string {
    const alias = this.#alias('v');
    const names = types.map((_, i) => `o${i + 1}`).join(', ');
    return `(select ${names} from (values ${this.#rowOf(types)}, ${this.#rowOf(types)}) as ${alias}(${names}))`;
  }

  #rowOf(types: readonly TypeName[]): string {
    const terms = new Expressions(this.#dice, []);
    return `(${types.map((t) => `${terms.literal(t)}::${t}`).join(', ')})`;
  }

  #table(): Source {
    const tables = this.#world.tables.filter((t) => visibleColumns(t).length > 0);
    const table = this.#dice.of(tables);
    const alias = this.#alias('a');
    const shown = visibleColumns(table);
    const declared = shown.map(({ column }) => ({
      sql: `${alias}.${column.name}`,
      type: column.type,
      sealed: table.sealed.includes(column.name),
    }));
    const computed = visibleComputed(table, this.#world).map((c) => {
      return { sql: `${alias}.${c.name}`, type: c.type, sealed: false };
    });
    const columns = [...declared, ...computed];
    const keyed = shown.some((v) => v.column.name === 'id' && v.masked === 'none');
    return { alias, columns, keyed, table: table.name };
  }

  /** A FROM item and its text. */
  #source(depth: number): readonly [Source, string] {
    const dice = this.#dice;
    const [common] = this.#tables;
    if (common !== undefined && dice.chance(0.6)) {
      const alias = this.#alias('c');
      const columns = common.columns.map((c) => ({ ...c, sql: c.sql.replace(common.alias, alias) }));
      return [{ ...common, alias, columns }, `${common.alias} as ${alias}`];
    }
    if (dice.chance(0.14)) return this.#values();
    if (depth > 0 && dice.chance(0.2)) {
      const body = this.#query(depth - 1);
      const alias = this.#alias('d');
      return [this.#derived(alias, body), `(${body.sql}) as ${alias}`];
    }
    const source = this.#table();
    return [source, `${source.table} as ${source.alias}`];
  }

  #values(): readonly [Source, string] {
    const alias = this.#alias('v');
    const types: readonly TypeName[] = ['int4', 'text'];
    const columns = types.map((type, i) => ({ sql: `${alias}.o${i + 1}`, type, sealed: false }));
    const text = `(values (1, 'x'), (2, null), (57, '[redacted]')) as ${alias}(o1, o2)`;
    return [{ alias, columns, keyed: false, table: null }, text];
  }

  #from(depth: number): readonly [readonly Source[], string] {
    const dice = this.#dice;
    const [first, text] = this.#source(depth);
    const sources = [first];
    let sql = text;
    for (let more = dice.of([0, 0, 0, 1, 1, 2]); more > 0; more--) {
      const joined = this.#join(sources, depth);
      if (joined === null) break;
      sources.push(joined[0]);
      sql += joined[1];
    }
    if (dice.chance(0.06)) {
      const [made, call] = this.#made(sources);
      sources.push(made);
      sql += call;
    }
    if (dice.chance(0.06)) {
      const [worked, text] = this.#workedOut(sources);
      sources.push(worked);
      sql += text;
    }
    return [sources, sql];
  }

  /** Values worked out of the items before, as LATERAL: in one row, or in two. */
  #workedOut(sources: readonly Source[]): readonly [Source, string] {
    const dice = this.#dice;
    const terms = new Expressions(
      dice,
      sources.flatMap((s) => s.columns),
    );
    const types = dice.times(1, 2, () => dice.of(COMMON));
    const row = (): readonly string[] => types.map((t) => `(${terms.value(t, 2)})::${t}`);
    const twice = dice.chance(0.4);
    const alias = this.#alias('d');
    const names = types.map((_, i) => `o${i + 1}`).join(', ');
    const query = twice
      ? `values (${row().join(', ')}), (${row().join(', ')})`
      : `select ${row().join(', ')}`;
    const how = dice.of([', lateral', ' cross join lateral']);
    const derived = this.#derived(alias, { sql: '', types, sealed: types.map(() => false) });
    return [{ ...derived, keyed: !twice }, `${how} (${query}) as ${alias}(${names})`];
  }

  /** What a function makes of literals, or of a column of the items before it; its rows have no key. */
  #made(sources: readonly Source[]): readonly [Source, string] {
    const dice = this.#dice;
    const alias = this.#alias('u');
    const given = sources.flatMap((s) => s.columns).filter((c) => c.type === 'int4' || c.type === 'text');
    const column = given.length > 0 && dice.chance(0.7) ? dice.of(given) : null;
    const type = column?.type ?? 'int4';
    if (column !== null && dice.chance(0.3)) {
      const members: readonly Term[] = [
        { sql: `${alias}.o1`, type: 'text', sealed: false },
        { sql: `${alias}.o2`, type: 'jsonb', sealed: false },
        { sql: `${alias}.o3`, type: 'int8', sealed: false },
      ];
      const object = `jsonb_each(jsonb_build_object('a', ${column.sql}, 'b', null))`;
      return [
        { alias, columns: members, keyed: true, table: null },
        ` cross join ${object} with ordinality as ${alias}(o1, o2, o3)`,
      ];
    }
    const call = column === null ? 'generate_series(1, 3, 2)' : `unnest(array[${column.sql}, null])`;
    const how = dice.of([', ', ' cross join ', ' cross join lateral ']);
    const columns: readonly Term[] = [
      { sql: `${alias}.o1`, type, sealed: false },
      { sql: `${alias}.o2`, type: 'int8', sealed: false },
    ];
    return [
      { alias, columns, keyed: true, table: null },
      `${how}${call} with ordinality as ${alias}(o1, o2)`,
    ];
  }

  #join(sources: readonly Source[], depth: number): readonly [Source, string] | null {
    const dice = this.#dice;
    const [right, text] = this.#source(depth > 1 ? 1 : 0);
    const pairs = this.#keyPairs(
      sources.flatMap((s) => s.columns),
      right.columns,
    );
    const computed = right.table === null || sources.every((s) => s.table === null);
    const seen = [...sources.flatMap((s) => s.columns), ...right.columns];
    // Wrapped, it is not an equality of keys, whatever it holds.
    const anything = (): string => `(${new Expressions(dice, seen).predicate(1)}) is true`;
    if (computed && dice.chance(0.3)) {
      const how = dice.of(['join', 'left join', 'right join', 'cross join']);
      return [right, ` ${how} ${text}${how === 'cross join' ? '' : ` on ${anything()}`}`];
    }
    if (pairs.length === 0) return null;
    if (right.table !== null && dice.chance(0.08)) {
      const around = sources.flatMap((s) => s.columns);
      return this.#lateral(right, text, dice.of(pairs), around);
    }
    if (dice.chance(0.1)) {
      const [l, r] = dice.of(pairs);
      const more = dice.chance(0.3) ? ` and ${anything()}` : '';
      return [right, ` full join ${text} on ‹${l.sql}› = ‹${r.sql}›${more}`];
    }
    const on = dice.of([1, 1, 1, 2]) === 1 ? [dice.of(pairs)] : dice.some(pairs, 0.3);
    const conditions = (on.length === 0 ? [dice.of(pairs)] : on).map(([l, r]) => `‹${l.sql}› = ‹${r.sql}›`);
    if (dice.chance(0.2)) conditions.push(anything());
    return [right, ` ${dice.of(['join', 'left join', 'left join'])} ${text} on ${conditions.join(' and ')}`];
  }

  /** The rows of a table that a key of the items before it leads to, as LATERAL, some with columns of these beside. */
  #lateral(
    right: Source,
    text: string,
    [outer, key]: readonly [Term, Term],
    around: readonly Term[],
  ): readonly [Source, string] {
    const dice = this.#dice;
    const shown = dice.chance(0.5) ? [...right.columns, dice.of(around)] : right.columns;
    const terms = new Expressions(dice, shown);
    const types = shown.map((c) => c.type);
    const list = shown.map((c, i) => `${c.sql} as o${i + 1}`).join(', ');
    const more = dice.chance(0.4) ? ` and ${terms.predicate(1)}` : '';
    const where = `‹${key.sql}› = ‹${outer.sql}›${more}`;
    const alias = this.#alias('d');
    const how = dice.of(['cross join', 'left join']);
    const on = how === 'left join' ? ' on true' : '';
    const derived = this.#derived(alias, { sql: '', types, sealed: types.map(() => false) });
    return [derived, ` ${how} lateral (select ${list} from ${text} where ${where}) as ${alias}${on}`];
  }

  #keyPairs(left: readonly Term[], right: readonly Term[]): readonly (readonly [Term, Term])[] {
    return left
      .filter((l) => l.sealed)
      .flatMap((l) =>
        right.filter((r) => r.sealed && r.type === l.type).map((r): readonly [Term, Term] => [l, r]),
      );
  }

  #select(depth: number): Body {
    const dice = this.#dice;
    const [sources, from] = this.#from(depth);
    const terms = new Expressions(
      dice,
      sources.flatMap((s) => s.columns),
      (t) => this.#scalarQuery(t, sources),
    );
    const [only] = sources;
    const mayFail = depth === 2 && sources.length === 1 && only?.table !== null;
    const failing = mayFail && dice.chance(this.#bold ? 0.3 : 0.08) ? this.#failing(from, terms) : null;
    if (failing !== null) return failing;
    const where = this.#where(sources, terms);
    const keyed = this.#bold || sources.every((s) => s.keyed);
    const shape = dice.upTo(9);
    if (shape >= 7) return this.#grouped(from, where, terms, keyed);
    if (shape === 6) return this.#windowed(from, where, terms, keyed);
    if (only !== undefined && only.table !== null && depth === 2 && dice.chance(0.08)) {
      return { sql: `select ‹*${only.alias}› from ${from}${where}`, types: [], sealed: [] };
    }
    return this.#plain(from, where, terms, keyed);
  }

  /**
   * A question that fails on some values, in each clause. Alone, and at the top: whatever stops
   * early above it, or decides before it, would let the planner choose on which rows it fails.
   */
  #failing(from: string, terms: Expressions): Body | null {
    const dice = this.#dice;
    const predicate = terms.mayFail();
    if (predicate === null) return null;
    const number = terms.columnOf('int4');
    const clauses = [
      (fails: string) => `select max(${fails}) as o1 from ${from}`,
      (fails: string) => `select count(*) as o1 from ${from} group by ${fails}`,
      (fails: string) => `select count(*) over (partition by ${fails}) as o1 from ${from}`,
      (fails: string) => `select ${number} as o1 from ${from} order by ${fails}`,
      (fails: string) => `select distinct ${fails} as o1 from ${from}`,
      (fails: string) => `select f.o1 from (select ${fails} as o1 from ${from}) as f where f.o1 < 1`,
    ];
    if (number !== null && dice.chance(0.4)) return plainOf(dice.of(clauses)(`57 / (${number} - 57)`));
    switch (dice.upTo(5)) {
      case 0:
        return this.#plainColumns(
          from,
          ` where case when ${terms.predicate(1)} then ${predicate} else false end`,
          terms,
        );
      case 1:
        return plainOf(`select count(*) filter (where ${predicate}) as o1 from ${from}`);
      case 2:
        return plainOf(`select case when ${terms.predicate(1)} then ${predicate} end as o1 from ${from}`);
      case 3:
        if (number === null) break;
        return plainOf(
          `select ${number} as o1, count(*) as o2 from ${from} group by ${number} having 57 / (${dice.of([number, `max(${number})`])} - 57) < 1`,
        );
    }
    return this.#plainColumns(from, ` where ${predicate}`, terms);
  }

  #where(sources: readonly Source[], terms: Expressions): string {
    const dice = this.#dice;
    const conjuncts = dice.times(0, dice.of([0, 1, 2, 2]), () =>
      dice.chance(0.4) ? (this.#semiJoin(sources) ?? terms.predicate(2)) : terms.predicate(2),
    );
    return conjuncts.length === 0 ? '' : ` where ${conjuncts.join(' and ')}`;
  }

  /** IN or EXISTS over a table, on sealed keys. */
  #semiJoin(sources: readonly Source[]): string | null {
    const dice = this.#dice;
    const inner = this.#table();
    const pairs = this.#keyPairs(
      sources.flatMap((s) => s.columns),
      inner.columns,
    );
    if (pairs.length === 0) return null;
    const [outer, key] = dice.of(pairs);
    const terms = new Expressions(dice, inner.columns);
    const more = dice.chance(0.4) ? terms.predicate(1) : 'true';
    const from = `${inner.table} as ${inner.alias}`;
    const not = dice.chance(0.4) ? 'not ' : '';
    if (dice.chance(0.2)) return this.#compared(sources, `from ${from} where ${more}`, inner);
    return dice.chance(0.5)
      ? `${not}‹${outer.sql}› in (select ‹${key.sql}› from ${from} where ${more})`
      : `${not}exists (select 1 from ${from} where ‹${key.sql}› = ‹${outer.sql}› and ${more})`;
  }

  /** A value compared with each of those that a query yields, as they are shown. */
  #compared(sources: readonly Source[], rows: string, inner: Source): string {
    const dice = this.#dice;
    const outer = sources.flatMap((s) => s.columns);
    const pairs = outer.flatMap((l) =>
      inner.columns.filter((r) => r.type === l.type).map((r) => [l, r] as const),
    );
    if (pairs.length === 0) return 'true';
    const [left, right] = dice.of(pairs);
    const comparable = left.type !== 'jsonb' && left.type !== 'tsvector';
    const operator = comparable ? dice.of(['<', '<=', '>', '>=']) : '<>';
    return `${left.sql} ${operator} ${dice.of(['any', 'all'])} (select ${right.sql} ${rows})`;
  }

  #scalarQuery(type: TypeName, sources: readonly Source[]): string | null {
    const dice = this.#dice;
    if (type !== 'int4' && type !== 'text') return null;
    const inner = this.#table();
    const column = inner.columns.filter((c) => c.type === type)[0];
    if (column === undefined) return null;
    const pairs = this.#keyPairs(
      sources.flatMap((s) => s.columns),
      inner.columns,
    );
    const keyed = pairs.length > 0 && dice.chance(0.5);
    const beside = keyed || dice.chance(0.6) ? '' : this.#beside(sources, inner);
    const where = keyed ? this.#correlated(dice.of(pairs)) : beside;
    const rows = `from ${inner.table} as ${inner.alias}${where}`;
    if (dice.chance(0.2)) return `(array(select ${column.sql} ${rows}))[${dice.upTo(3)}]`;
    return `(select ${dice.of(['max', 'min'])}(${column.sql}) ${rows})`;
  }

  /** A condition on columns of the query around as well; wrapped, it is not an equality of keys. */
  #beside(sources: readonly Source[], inner: Source): string {
    const seen = [...sources.flatMap((s) => s.columns), ...inner.columns, ...inner.columns];
    return ` where (${new Expressions(this.#dice, seen).predicate(2)}) is true`;
  }

  #correlated([outer, key]: readonly [Term, Term]): string {
    return ` where ‹${key.sql}› = ‹${outer.sql}›`;
  }

  #plainColumns(from: string, where: string, terms: Expressions): Body {
    const columns = this.#dice.times(1, 2, () => terms.column()).filter((c) => c !== null);
    const list = columns.map((c, i) => `${c.sql} as o${i + 1}`).join(', ');
    return {
      sql: `select ${list} from ${from}${where}`,
      types: columns.map((c) => c.type),
      sealed: columns.map(() => false),
    };
  }

  #plain(from: string, where: string, terms: Expressions, keyed: boolean): Body {
    const dice = this.#dice;
    const outputs = dice.times(1, 4, () => {
      const direct = dice.chance(0.5) ? terms.column() : null;
      const type = direct?.type ?? dice.of(COMMON);
      return { sql: direct?.sql ?? terms.value(type, 2), type, sealed: direct?.sealed === true };
    });
    const distinct = dice.chance(0.2) ? 'distinct ' : '';
    const list = outputs.map((o, i) => `${o.sql} as o${i + 1}`).join(', ');
    const body = { types: outputs.map((o) => o.type), sealed: outputs.map((o) => o.sealed) };
    const key = distinct === '' && keyed && dice.chance(0.12) ? terms.column() : null;
    if (key !== null) {
      const sql = `select distinct on (${key.sql}) ${list} from ${from}${where} order by ${key.sql}`;
      return { ...body, sql };
    }
    const tail = this.#tail(outputs.length, keyed || distinct !== '', distinct !== '');
    return { ...body, sql: `select ${distinct}${list} from ${from}${where}${tail}` };
  }

  /** ORDER BY and LIMIT; where ties could not be broken by key, every output orders. */
  #tail(width: number, determined: boolean, distinct = false): string {
    const dice = this.#dice;
    if (!dice.chance(0.3)) return '';
    const all = Array.from({ length: width }, (_, i) => i + 1);
    const by = determined ? dice.some(all, 0.5) : all;
    const keys = by.map((n) => `${n}${dice.of(['', ' desc', ' nulls first', ' desc nulls last'])}`);
    const offset = dice.chance(0.2) ? ` offset ${dice.upTo(2)}` : '';
    if (!distinct && keys.length > 0 && dice.chance(0.2))
      return ` order by ${keys.join(', ')} fetch first ${dice.upTo(5)} rows with ties`;
    return `${keys.length === 0 ? '' : ` order by ${keys.join(', ')}`} limit ${dice.upTo(5)}${offset}`;
  }

  #grouped(from: string, where: string, terms: Expressions, keyed: boolean): Body {
    const dice = this.#dice;
    const keys = dice.times(0, 2, () => {
      const column = dice.chance(0.6) ? terms.column() : null;
      const type = column?.type ?? dice.of(COMMON);
      return { sql: column?.sql ?? terms.value(type, 1), type };
    });
    const aggregates = dice.times(1, 3, () => terms.aggregate(keyed));
    const list = [...keys.map((k) => k.sql), ...aggregates.map((a) => a.sql)].map(
      (sql, i) => `${sql} as o${i + 1}`,
    );
    const by = keys.length === 0 ? '' : ` group by ${this.#keysOrSets(keys.map((_, i) => i + 1).join(', '))}`;
    const having = dice.chance(0.25)
      ? ` having ${dice.of(['count(*) > 1', 'count(*) < 3', terms.having()])}`
      : '';
    const sql = `select ${list.join(', ')} from ${from}${where}${by}${having}${this.#tail(list.length, this.#bold)}`;
    const types = [...keys, ...aggregates].map((o) => o.type);
    return { sql, types, sealed: types.map(() => false) };
  }

  #keysOrSets(keys: string): string {
    if (!this.#dice.chance(0.25)) return keys;
    return this.#dice.of([`rollup (${keys})`, `cube (${keys})`, `grouping sets ((${keys}), (1), ())`]);
  }

  #windowed(from: string, where: string, terms: Expressions, keyed: boolean): Body {
    const dice = this.#dice;
    const outputs = [terms.column()?.sql ?? '1', ...dice.times(1, 2, () => terms.window(keyed))];
    const list = outputs.map((sql, i) => `${sql} as o${i + 1}`).join(', ');
    return { sql: `select ${list} from ${from}${where}`, types: [], sealed: [] };
  }
}

/** At the top, so that nobody asks what its columns are. */
function plainOf(sql: string): Body {
  return { sql, types: [], sealed: [] };
}

const COMMON: readonly TypeName[] = ['int4', 'text', 'numeric', 'bool', 'date', 'timestamptz'];
