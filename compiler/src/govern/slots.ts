import { InternalError } from '../errors/errors.js';
import { equalsAny, operationNode } from '../plan/nodes.js';
import type { AttributeMatch, ChainSubject, Expr, LiteralValue, Parameter, Slot } from '../plan/plan.js';
import { mapChildren } from '../plan/walk.js';
import { arrayOf, isArray, type TypeName } from '../types/types.js';

/** The slots of a query, plus those that policy adds. */
export class GovernedSlots {
  readonly #slots: Slot[];
  readonly #known = new Map<string, number>();

  constructor(slots: readonly Slot[]) {
    this.#slots = [...slots];
  }

  literal(value: LiteralValue, type: TypeName): Parameter {
    return this.#parameter(`literal ${type} ${JSON.stringify(value)}`, {
      kind: 'literal',
      type,
      value,
      written: false,
    });
  }

  /** Returns a parameter for an attribute of a chain subject: its value, or the array of its values. */
  #attribute({ index, values }: ChainSubject, name: string, element: TypeName): Parameter {
    if (isArray(element)) throw new InternalError('an attribute has elements that are arrays');
    const type = values === 'one' ? element : arrayOf(element);
    return this.#parameter(`attribute ${index} ${type} ${name}`, {
      kind: 'attribute',
      type,
      subject: index,
      name,
    });
  }

  /** Returns a parameter for a value that an earlier step of a runtime relation provides. */
  given(name: string, type: TypeName): Parameter {
    return this.#parameter(`given ${type} ${name}`, { kind: 'given', type, name });
  }

  /** Returns a parameter for the values of one column of the rows in slot `rows`. */
  keys(rows: number, column: string, element: TypeName): Parameter {
    const slot = this.#slots[rows];
    if (slot?.kind !== 'runtime' || isArray(element)) throw new InternalError(`slot ${rows} brings no keys`);
    const { index } = slot;
    return this.#parameter(`keys ${index} ${element} ${column}`, {
      kind: 'keys',
      type: arrayOf(element),
      index,
      column,
    });
  }

  pad(pad: 'inner' | 'outer', domain: string): Parameter {
    return this.#parameter(`pad ${pad} ${domain}`, { kind: 'pad', type: 'bytea', pad, domain });
  }

  #parameter(key: string, slot: Slot): Parameter {
    const index = this.#known.get(key) ?? this.#slots.push(Object.freeze(slot)) - 1;
    this.#known.set(key, index);
    return Object.freeze({ kind: 'parameter', slot: index, type: slot.type });
  }

  /** Turns the literals and attributes of a policy predicate into parameters. */
  ground(expr: Expr): Expr {
    if (expr.kind === 'literal') return this.literal(expr.value, expr.type);
    if (expr.kind === 'attribute_match') return this.#groundMatch(expr);
    return mapChildren(
      expr,
      (e) => this.ground(e),
      (q) => q,
    );
  }

  #groundMatch({ arg: compared, equality, attribute, subject }: AttributeMatch): Expr {
    if (subject === null)
      throw new TypeError(
        `a row filter says attribute('${attribute}') of nobody: pass it through forChain(filter, [attributePattern(attributes)]) first`,
      );
    const arg = this.ground(compared);
    const value = this.#attribute(subject, attribute, compared.type);
    if (subject.values === 'one') return operationNode(equality, arg, value);
    return equalsAny(equality, arg, value);
  }

  finish(): readonly Slot[] {
    return Object.freeze([...this.#slots]);
  }
}
