import type { TableAttribute } from '../../../policy/index.js';
import {
  and,
  type ComparedValue,
  type Encoder,
  equal,
  type Formula,
  not,
  or,
  type ProvenPolicy,
  scriptOf,
  text,
} from '../../../policy/proof/index.js';
import type { Solver } from '../../policy-proof/solver.js';
import type { CallerValueNames, RowSet, RowSets } from './caller-values.js';

/**
 * A row set of a database policy, compared with an attribute. `within`: the attribute has all values of the set;
 * `around`: the set has all values of the attribute.
 */
type SetRelation = 'same' | 'within' | 'around' | 'unrelated';

/**
 * Facts that connect attributes in the policy with settings, claims and rows in the database. An attribute of the
 * caller is a value of the session; an attribute read from an entity is compared with each row set of the same column,
 * and the solver proves which of them contains the other.
 */
export class Ties {
  readonly #policy: ProvenPolicy;
  readonly #names: CallerValueNames;
  readonly #sets: RowSets;
  readonly #solver: Solver;
  readonly #relations = new Map<string, Promise<SetRelation>>();

  constructor(policy: ProvenPolicy, names: CallerValueNames, sets: RowSets, solver: Solver) {
    this.#policy = policy;
    this.#names = names;
    this.#sets = sets;
    this.#solver = solver;
  }

  tableAttribute(name: string): TableAttribute | null {
    return this.#policy.snapshot.tableAttributes.get(name) ?? null;
  }

  /** Facts about one row and one caller, including the encoder's. @param roleName name of the database role */
  async factsOf(encoder: Encoder, roleName: string): Promise<readonly Formula[]> {
    const facts: Formula[] = [];
    for (const name of encoder.attributes) facts.push(...this.#ofAttribute(name, encoder, roleName)); // the set may grow here
    const sets = new Set(encoder.uses.flatMap(({ attribute }) => this.#sets.named(attribute) ?? []));
    for (const set of sets)
      for (const name of encoder.attributes) {
        const attribute = this.tableAttribute(name);
        if (attribute === null || !readsColumn(attribute, set)) continue;
        const relation = await this.#relation(set, attribute, roleName);
        facts.push(...setFacts(set, attribute, relation, encoder));
      }
    return [...encoder.facts, ...facts];
  }

  /** The row sets used with the encoder that no attribute is proved to equal. */
  async unmatched(encoder: Encoder, roleName: string): Promise<readonly RowSet[]> {
    const sets = new Set(encoder.uses.flatMap(({ attribute }) => this.#sets.named(attribute) ?? []));
    const found: RowSet[] = [];
    for (const set of sets) {
      const attributes = [...encoder.attributes].flatMap((name) => this.tableAttribute(name) ?? []);
      const relations = await Promise.all(
        attributes.filter((a) => readsColumn(a, set)).map((a) => this.#relation(set, a, roleName)),
      );
      if (!relations.includes('same')) found.push(set);
    }
    return found;
  }

  #ofAttribute(name: string, encoder: Encoder, roleName: string): readonly Formula[] {
    const missing = encoder.attribute(name, 'missing');
    const isNotAny = not(encoder.attribute(name, 'any'));
    const attribute = this.tableAttribute(name);
    if (attribute !== null) {
      const lacks = or(...[...attribute.needs].map((needed) => encoder.attribute(needed, 'missing')));
      return [isNotAny, equal(missing, lacks)];
    }
    const value = this.#names.named(name);
    if (value === null) return [];
    if (value.list) return [isNotAny];
    const single = [isNotAny, not(encoder.attribute(name, 'empty'))];
    const compared = instancesOf([name], encoder);
    const has = (one: ComparedValue): Formula => encoder.hasValue(name, one);
    if (value.source.kind === 'database user')
      return [
        ...single,
        not(missing),
        ...compared.flatMap((one) => isText(one, (args) => equal(has(one), equal(args, text(roleName))))),
      ];
    return [
      ...single,
      // An empty text counts as a missing attribute.
      ...compared.flatMap((one) => isText(one, (args) => not(and(has(one), equal(args, text('')))))),
      ...compared.flatMap((one, i) =>
        compared.slice(i + 1).flatMap((other) => {
          const same = sameArguments(one, other);
          return same === null ? [] : [or(not(has(one)), not(has(other)), same)];
        }),
      ),
    ];
  }

  #relation(set: RowSet, attribute: TableAttribute, roleName: string): Promise<SetRelation> {
    const key = JSON.stringify([set.id, attribute.name, roleName]);
    const known = this.#relations.get(key) ?? this.#compare(set, attribute, roleName);
    this.#relations.set(key, known);
    return known;
  }

  async #compare(
    { encoder, condition }: RowSet,
    { filter }: TableAttribute,
    role: string,
  ): Promise<SetRelation> {
    const accepted = encoder.accepts(filter);
    const facts = await this.factsOf(encoder, role);
    const cases = [[], [and(condition, not(accepted))], [and(accepted, not(condition))]];
    const [possible, less, more] = await this.#solver.check(scriptOf(facts, cases));
    if (possible?.kind !== 'sat') return 'unrelated';
    const [isWithin, isAround] = [less?.kind === 'unsat', more?.kind === 'unsat'];
    if (isWithin) return isAround ? 'same' : 'within';
    return isAround ? 'around' : 'unrelated';
  }
}

/** True if an attribute and a row set have the values of the same column of the same table. */
function readsColumn({ relation, column }: TableAttribute, set: RowSet): boolean {
  const physical = relation.columns.find(({ name }) => name === column)?.physical ?? null;
  return relation.name === set.entity?.name && physical === set.column;
}

function setFacts(
  { id }: RowSet,
  { name }: TableAttribute,
  relation: SetRelation,
  encoder: Encoder,
): readonly Formula[] {
  if (relation === 'unrelated') return [];
  const some = and(not(encoder.attribute(name, 'missing')), not(encoder.attribute(name, 'empty')));
  return instancesOf([id, name], encoder).map((one) => {
    const [inSet, inAttribute] = [encoder.hasValue(id, one), and(some, encoder.hasValue(name, one))];
    if (relation === 'same') return equal(inSet, inAttribute);
    return relation === 'within' ? or(not(inSet), inAttribute) : or(not(inAttribute), inSet);
  });
}

/** The values that were compared with one of the attributes, without duplicates. */
export function instancesOf(names: readonly string[], { uses }: Encoder): readonly ComparedValue[] {
  const own = uses.filter(({ attribute }) => names.includes(attribute));
  return [...new Map(own.map(({ compared }) => [`${compared.type} ${compared.key}`, compared])).values()];
}

function isText({ args, type }: ComparedValue, fact: (value: Formula) => Formula): readonly Formula[] {
  const [value] = args ?? [];
  return value !== undefined && value.sort === 'String' && type !== 'uuid' ? [fact(value)] : [];
}

/** A formula that is true if two values are the same; null if the logic cannot express that. */
function sameArguments(a: ComparedValue, b: ComparedValue): Formula | null {
  if (a.args === null || b.args === null || a.type !== b.type) return null;
  const others = b.args;
  return and(...a.args.map((arg, i) => equal(arg, others[i] ?? arg)));
}
