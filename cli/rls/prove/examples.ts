import type { Relation as Entity, TypeName } from 'osl-compiler';
import { isArray, typeRow } from 'osl-compiler/types';
import type { TableAttribute } from '../../../policy/index.js';
import {
  and,
  type ComparedValue,
  columnValue,
  Encoder,
  equal,
  expressionKey,
  type Formula,
  not,
  number,
  OTHER_VALUES,
  or,
  type RowVariable,
  type SolverModel,
  scriptOf,
  text,
  type View,
  variable,
} from '../../../policy/proof/index.js';
import type { Solver } from '../../policy-proof/solver.js';
import type { Role } from '../catalog/catalog.js';
import type { CallerSource } from '../import/caller-value.js';
import { type CallerValueNames, CLAIM_PREFIX, CLAIMS_SETTING, type RowSet } from './caller-values.js';
import type { RowSecurityEncoder } from './row-security.js';
import { instancesOf, type Ties } from './ties.js';

/** The rows of one table that one role sees in the database and through the gateway, to be compared. */
export interface VisibilityQuestion {
  readonly role: Role;
  readonly policyRole: string;
  readonly entity: Entity;
  readonly encoder: Encoder;
  /** True if the row is visible in the database. */
  readonly row: Formula;
  readonly view: View;
  /** Physical names of the columns that the role may read in the database. */
  readonly readable: ReadonlySet<string>;
}

/** A possible difference between database and gateway, in whole rows or in one column. */
export interface VisibilityDifference {
  readonly formula: Formula;
  /** `more`: the gateway shows rows or values that the database hides; `less`: the reverse. */
  readonly direction: 'more' | 'less';
  /** Name of the entity's column; null if the whole row differs. */
  readonly column: string | null;
}

/** Inputs for an example of a difference. */
export interface ExampleContext {
  readonly ties: Ties;
  readonly names: CallerValueNames;
  readonly rowSecurity: RowSecurityEncoder;
  readonly solver: Solver;
}

/** Values by physical column, in Postgres' text format. */
export type ExampleRow = ReadonlyMap<string, string | null>;

/** A row, a caller and the rows of other tables for which policy and row security differ; all values are made up. */
export interface Example {
  readonly direction: VisibilityDifference['direction'];
  /** The entity's column that only the policy or only row security shows; null if the whole row differs. */
  readonly column: string | null;
  readonly entity: Entity;
  readonly row: ExampleRow;
  /** Rows of other tables on which the difference depends. */
  readonly others: readonly { readonly entity: Entity; readonly row: ExampleRow }[];
  readonly caller: ExampleCaller;
}

interface ExampleCaller {
  /** Name of the role in the database; `policyRole` is its name in the policy. */
  readonly role: string;
  readonly policyRole: string;
  readonly settings: ReadonlyMap<string, string>;
  readonly claims: Readonly<Record<string, unknown>>;
  /** Settings that must be unset: one that was ever set in the session reads as an empty text, not NULL. */
  readonly unset: readonly string[];
  readonly attributes: Readonly<Record<string, string | readonly string[]>>;
}

/** Values of one attribute of the caller in a model of the solver. */
interface CallerValues {
  readonly isMissing: boolean;
  /** True if the setting or claim is an empty text. */
  readonly isBlank: boolean;
  /** Null if any value will do. */
  readonly values: readonly SolverText[] | null;
}

interface SolverText {
  readonly text: string;
  readonly type: TypeName;
}

/** Builds an example from a model of the solver; returns the reason if that is not possible. */
export async function exampleOf(
  { direction, column }: VisibilityDifference,
  question: VisibilityQuestion,
  context: ExampleContext,
  model: SolverModel,
): Promise<Example | string> {
  const { encoder, entity, role, policyRole } = question;
  const row = rowOf(entity, [encoder], model);
  const values = callerValuesOf(encoder, context, model);
  if (row === null || values === null) return 'the solver has values that no database has';
  const others = new WitnessRows(context, role.name, values);
  const isComplete = await others.add(encoder, model, 0);
  if (!isComplete) return 'no rows of the other tables were found for an example';
  const caller = callerOf(others.caller, context, role.name);
  return {
    direction,
    column,
    entity,
    row,
    others: others.rows,
    caller: { ...caller, role: role.name, policyRole },
  };
}

function rowOf(
  { columns, primaryKey }: Entity,
  encoders: readonly Encoder[],
  model: SolverModel,
): ExampleRow | null {
  const row = new Map<string, string | null>();
  for (const { physical, name, type, labels, nullable, stored } of columns) {
    const used = encoders.flatMap((encoder) => encoder.columns.get(physical) ?? [])[0];
    const isNeeded = !nullable || primaryKey.includes(name);
    const sample = isArray(type) ? '{}' : stored === undefined ? typeRow(type).example : null;
    const value =
      used === undefined ? (isNeeded ? (labels?.[0] ?? sample) : null) : textOfColumn(used, model);
    if (value === undefined) return null;
    row.set(physical, value);
  }
  return row;
}

/** Text of a column's value; null for NULL, undefined if the database has no such value. */
function textOfColumn(column: RowVariable, model: SolverModel): string | null | undefined {
  const value = columnValue(column, model);
  return value === undefined || value === null ? value : inDatabase(value, column.type);
}

/** Converts a text made up by the solver to a value of the type. Equal texts become equal uuids. */
function inDatabase(value: string, type: TypeName): string {
  if (type !== 'uuid' || /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(value)) return value;
  const digits = [...value].map((c) => (c.codePointAt(0) ?? 0).toString(16).padStart(5, '0')).join('');
  const hex = digits.slice(-31).padStart(31, '0');
  return `e${hex.slice(0, 7)}-${hex.slice(7, 11)}-${hex.slice(11, 15)}-${hex.slice(15, 19)}-${hex.slice(19)}`;
}

/** The text of a value that is compared with an attribute; null for NULL; undefined if it is not known. */
function textOfCompared(
  { args, column, type }: ComparedValue,
  model: SolverModel,
): string | null | undefined {
  if (column !== null) return columnValue(column, model);
  const value = args?.at(-1);
  if (value?.kind === 'text') return value.value;
  if (value?.kind !== 'number') return undefined;
  return type === 'bool' ? String(value.text === '1') : value.text;
}

function callerValuesOf(
  encoder: Encoder,
  { names, ties, rowSecurity }: ExampleContext,
  model: SolverModel,
): ReadonlyMap<string, CallerValues> | null {
  const found = new Map<string, CallerValues>();
  const is = (name: string, property: string): boolean =>
    model.value(`${encoder.caller} ${property} ${name}`) === true;
  for (const name of encoder.attributes) {
    if (ties.tableAttribute(name) !== null) continue;
    const [isMissing, isBlank] = [is(name, 'missing'), is(name, 'blank')];
    const values: SolverText[] = [];
    const others = new Set<string>();
    for (const one of instancesOf([name], encoder)) {
      const value = textOfCompared(one, model);
      if (value === undefined && model.holds(encoder.hasValue(name, one))) return null;
      if (value === undefined || value === null) continue;
      if (model.holds(encoder.hasValue(name, one))) values.push({ text: value, type: one.type });
      else others.add(value);
    }
    const isEmptyList = names.named(name)?.list === true && is(name, 'empty');
    const hasNone = !isMissing && !isEmptyList && values.length === 0;
    const isOpen = hasNone && others.size === 0;
    if (hasNone && !isOpen) {
      const other = otherValue(name, others, encoder, rowSecurity);
      if (other === null) return null;
      values.push(other);
    }
    const own = isMissing || isEmptyList ? [] : values;
    found.set(name, { isMissing, isBlank: isMissing && isBlank, values: isOpen ? null : own });
  }
  return found;
}

/** A value not in `others`, in the type of the comparison; for text, a uuid, which fits both. Null if none is left. */
function otherValue(
  name: string,
  others: ReadonlySet<string>,
  encoder: Encoder | null,
  { sets }: ExampleContext['rowSecurity'],
): SolverText | null {
  const encoders = [...(encoder === null ? [] : [encoder]), ...sets.all.map((set) => set.encoder)];
  const types = encoders.flatMap((one) => instancesOf([name], one).map(({ type }) => type));
  const type = types.find((one) => one !== 'text') ?? 'uuid';
  const text = OTHER_VALUES[type]?.find((one) => !others.has(one));
  return text === undefined ? null : { text, type };
}

function callerOf(
  values: ReadonlyMap<string, CallerValues>,
  { names, rowSecurity }: ExampleContext,
  role: string,
): Omit<ExampleCaller, 'role' | 'policyRole'> {
  const settings = new Map<string, string>();
  const claims: Record<string, unknown> = {};
  const attributes: Record<string, string | readonly string[]> = {};
  const unset: string[] = [];
  for (const [name, { isMissing, isBlank, values: own }] of values) {
    const known = names.named(name);
    const some = own ?? [otherValue(name, new Set(), null, rowSecurity) ?? ANY_TEXT];
    const texts = [...new Set(some.map((one) => inDatabase(one.text, one.type)))];
    const [first = ''] = texts;
    if (known?.source.kind === 'database user') {
      attributes[name] = role;
      continue;
    }
    if (!isMissing) attributes[name] = known?.list === false ? first : texts;
    if (known !== null && isMissing && !isBlank) unset.push(...settingsOf(known.source));
    if (known === null || (isMissing && !isBlank)) continue;
    if (known.source.kind === 'setting') settings.set(known.source.name, isBlank ? '' : texts.join(','));
    else if (known.source.kind === 'claim')
      setClaim(claims, known.source.path, isBlank ? '' : known.list ? texts : first);
  }
  const isSet = (setting: string): boolean => setting === CLAIMS_SETTING && Object.keys(claims).length > 0;
  return { settings, claims, attributes, unset: unset.filter((setting) => !isSet(setting)) };
}

/** Settings that can pass a value of the caller; none for the database user. */
function settingsOf(source: CallerSource): readonly string[] {
  if (source.kind === 'setting') return [source.name];
  return source.kind === 'claim' ? [CLAIMS_SETTING, `${CLAIM_PREFIX}${source.path[0] ?? ''}`] : [];
}

const ANY_TEXT: SolverText = { text: 'another', type: 'text' };

function setClaim(
  claims: Record<string, unknown>,
  [first = '', ...rest]: readonly string[],
  value: unknown,
): void {
  if (rest.length === 0) {
    claims[first] = value;
    return;
  }
  const inner: Record<string, unknown> = { ...Object(claims[first] ?? {}) };
  setClaim(inner, rest, value);
  claims[first] = inner;
}

/** Maximum number of tables in a chain of memberships. */
const MOST_DEPTH = 4;

/** Finds rows of other tables from which row sets and attributes get the values of the solver's model. */
class WitnessRows {
  readonly rows: { readonly entity: Entity; readonly row: ExampleRow }[] = [];
  readonly #context: ExampleContext;
  readonly #role: string;
  readonly #caller: Map<string, CallerValues>;

  constructor(context: ExampleContext, role: string, caller: ReadonlyMap<string, CallerValues>) {
    this.#context = context;
    this.#role = role;
    this.#caller = new Map(caller);
  }

  get caller(): ReadonlyMap<string, CallerValues> {
    return this.#caller;
  }

  /** Adds the rows that a model needs. Returns false if no such rows are found. */
  async add(encoder: Encoder, model: SolverModel, depth: number): Promise<boolean> {
    if (depth > MOST_DEPTH) return false;
    const groups = new Map<string, RowGroup>();
    for (const { attribute: name, compared } of encoder.uses) {
      const source = this.#sourceOf(name);
      if (source === null) continue;
      const value = textOfCompared(compared, model);
      if (value === null || value === undefined) continue;
      const holds = model.holds(encoder.hasValue(name, compared)) && this.#hasSome(source, encoder, model);
      const key = JSON.stringify([source.entity.name, source.column, value]);
      const group = groups.get(key) ?? {
        value,
        type: compared.type,
        positive: new Map(),
        negative: new Map(),
      };
      groups.set(key, group);
      (holds ? group.positive : group.negative).set(name, source);
    }
    for (const group of groups.values())
      for (const source of group.positive.values())
        if (!(await this.#addRow(source, group, [...groups.values()], depth))) return false;
    return true;
  }

  #hasSome({ name, attribute }: ExampleSource, encoder: Encoder, model: SolverModel): boolean {
    if (attribute === null) return true;
    return ['missing', 'empty'].every((p) => model.value(`${encoder.caller} ${p} ${name}`) !== true);
  }

  #sourceOf(name: string): ExampleSource | null {
    const set = this.#context.rowSecurity.sets.named(name);
    if (set !== null && set.entity !== null)
      return { name, set, attribute: null, entity: set.entity, column: set.column };
    const attribute = this.#context.ties.tableAttribute(name);
    if (attribute === null) return null;
    const { relation, column } = attribute;
    const physical = relation.columns.find((one) => one.name === column)?.physical ?? null;
    return { name, set: null, attribute, entity: relation, column: physical };
  }

  /** @param groups all values in the model; the row must not put a value into a set that lacks it in the model */
  async #addRow(
    source: ExampleSource,
    { value, type }: RowGroup,
    groups: readonly RowGroup[],
    depth: number,
  ): Promise<boolean> {
    const encoder = source.set?.encoder ?? new Encoder(source.entity, 'caller', null, expressionKey);
    const selects = ({ set, attribute }: ExampleSource): Formula => {
      if (set !== null) return set.condition;
      return attribute === null ? or() : encoder.accepts(attribute.filter);
    };
    const lacking = groups.flatMap((group) =>
      [...group.negative.values()]
        .filter(({ entity }) => entity.name === source.entity.name)
        .map((other) => ({ other, link: linkTo(other, group.value, group.type, encoder) })),
    );
    const unencoded = lacking.flatMap(({ other: { set } }) =>
      set === null || set.encoder === encoder ? [] : [set],
    );
    const chosen = and(
      selects(source),
      ...lacking.map(({ other, link }) => not(and(selects(other), ...link))),
      ...linkTo(source, value, type, encoder),
    );
    const facts = [
      ...(await this.#context.ties.factsOf(encoder, this.#role)),
      ...unencoded.flatMap((set) => set.encoder.facts),
      ...this.#callerFacts(encoder),
      ...unencoded.flatMap((set) => this.#callerFacts(set.encoder)),
    ];
    const script = scriptOf(facts, [[chosen]]);
    const [answer] = await this.#context.solver.check(script, { wantsValues: true });
    if (answer?.kind !== 'sat') return false;
    const model = script.model(new Map(answer.constants));
    const encoders = [encoder, ...unencoded.map((set) => set.encoder)];
    const row = rowOf(source.entity, encoders, model);
    if (row === null || !encoders.every((one) => this.#learn(one, model))) return false;
    this.rows.push({ entity: source.entity, row });
    return this.add(encoder, model, depth + 1);
  }

  /** Takes the caller's values that are still open from a model. Returns false if no database can have them. */
  #learn(encoder: Encoder, model: SolverModel): boolean {
    const values = callerValuesOf(encoder, this.#context, model);
    for (const [name, own] of values ?? []) if (this.#isOpen(name)) this.#caller.set(name, own);
    return values !== null;
  }

  #isOpen(name: string): boolean {
    const known = this.#caller.get(name);
    return known === undefined || known.values === null;
  }

  /** Facts that fix the caller's values to those of the example. */
  #callerFacts(encoder: Encoder): readonly Formula[] {
    return [...encoder.attributes].flatMap((name) => {
      const own = this.#caller.get(name);
      if (own === undefined) return [];
      const missing = encoder.attribute(name, 'missing');
      const blank = variable(`${encoder.caller} blank ${name}`, 'Bool');
      return [
        own.isMissing ? missing : not(missing),
        own.isBlank ? blank : not(blank),
        ...instancesOf([name], encoder).flatMap((one) => {
          if (own.values === null) return [];
          const among = own.values.map((v) => equalTo(one, v.text));
          return among.includes(null)
            ? []
            : [equal(encoder.hasValue(name, one), or(...among.flatMap((f) => f ?? [])))];
        }),
      ];
    });
  }
}

interface ExampleSource {
  readonly name: string;
  readonly set: RowSet | null;
  readonly attribute: TableAttribute | null;
  readonly entity: Entity;
  /** Physical name; null if only the existence of a row counts. */
  readonly column: string | null;
}

interface RowGroup {
  readonly value: string;
  readonly type: TypeName;
  readonly positive: Map<string, ExampleSource>;
  readonly negative: Map<string, ExampleSource>;
}

function linkTo(
  { column, entity }: ExampleSource,
  value: string,
  type: TypeName,
  encoder: Encoder,
): readonly Formula[] {
  const own = entity.columns.find(({ physical }) => physical === column);
  if (own === undefined) return [];
  const base = { kind: 'base' as const, column: own.physical, type: own.type };
  const term = own.type === 'bool' ? null : encoder.value(base);
  if (term === null || term.kind === 'opaque') return [];
  const args = term.kind === 'text' ? [term.value] : [term.rank, term.value];
  const same = equalTo({ type, args, key: '', column: null }, value);
  return same === null ? [] : [not(term.isNull), same];
}

/** A formula that is true if a value has this text; null if the logic cannot express that. */
function equalTo({ args, type }: ComparedValue, value: string): Formula | null {
  const last = args?.at(-1);
  if (last === undefined) return null;
  if (last.sort === 'String') return equal(last, text(value));
  if (type === 'bool') return equal(last, number(value === 'true' ? '1' : '0', 'Int'));
  if (!/^-?\d+(\.\d+)?$/.test(value) || (last.sort !== 'Int' && last.sort !== 'Real')) return null;
  const [rank] = args ?? [];
  const finite = rank !== undefined && rank !== last ? equal(rank, number('0', 'Int')) : and();
  return and(finite, equal(last, number(value, last.sort)));
}
