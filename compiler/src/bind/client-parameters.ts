import type { ErrorName, ErrorParameters, QueryError } from '../errors/errors.js';
import type { Parameter, Slot } from '../plan/plan.js';
import type { DeclaredType } from '../types/declared-types.js';
import { oidOf, type TypeName } from '../types/types.js';
import type { Location } from './ast.js';

type MakeError = <N extends ErrorName>(name: N, parameters: ErrorParameters<N>, at: Location) => QueryError;

/** The client's `$1 … $n` while a statement is bound: their types, as declared or by their first use, and their slots. */
export class ClientParameters {
  readonly #declared: readonly (DeclaredType | null)[];
  readonly #slots: Slot[];
  readonly #error: MakeError;
  readonly #types: (TypeName | null)[];
  readonly #slotOf = new Map<number, number>();
  readonly #places = new Map<number, Location>();

  /** `slots` are those of the statement; those of parameters are added to them. */
  constructor(declared: readonly (DeclaredType | null)[], slots: Slot[], error: MakeError) {
    this.#declared = declared;
    this.#slots = slots;
    this.#error = error;
    this.#types = declared.map((d) => (d === null || d.kind === 'foreign' ? null : d.type));
  }

  /** `$n` (from 1) as `type`; the first use decides its type. */
  parameter(number: number, type: TypeName, location: Location): Parameter {
    const index = number - 1;
    if (number < 1) throw this.#error('syntax', { detail: 'parameters are numbered from $1' }, location);
    if (number > 65_535)
      throw this.#error('tooLarge', { what: 'the parameter number', limit: 65_535 }, location);
    while (this.#types.length < number) this.#types.push(null);
    const known = this.#types[index] ?? type;
    this.#types[index] = known;
    return this.#slotFor(index, known);
  }

  /** The type of `$n`, if it has one yet. @throws QueryError E0511 where it is declared as one that only a cast may use */
  typeOf(number: number, location: Location): TypeName | null {
    if (!this.#places.has(number)) this.#places.set(number, location);
    const foreign = this.#foreign(number);
    if (foreign !== null) throw this.#declaredAs(foreign, number, location);
    return this.#types[number - 1] ?? null;
  }

  /** `$n::type` where `$n` is declared as a type that only a cast may use; null for any other. @throws QueryError E0511 */
  castOfForeign(number: number, type: TypeName, location: Location): Parameter | null {
    const foreign = this.#foreign(number);
    if (foreign === null) return null;
    if (!foreign.casts.includes(type)) throw this.#declaredAs(foreign, number, location);
    return this.#slotFor(number - 1, type);
  }

  #foreign(number: number) {
    const declared = this.#declared[number - 1] ?? null;
    return declared?.kind === 'foreign' ? declared : null;
  }

  #declaredAs({ sql, casts }: { sql: string; casts: readonly TypeName[] }, index: number, at: Location) {
    const type = sql.replace('"bit"', 'bit'); // quoted for the grammar
    return this.#error('declaredType', { index, type, cast: casts[0] ?? null }, at);
  }

  #slotFor(index: number, type: TypeName): Parameter {
    const as = this.#declared[index] ?? null;
    const declared = as === null || as.kind === 'model' ? null : as;
    const slot =
      this.#slotOf.get(index) ??
      this.#slots.push(Object.freeze({ kind: 'client', type, index, declared })) - 1;
    this.#slotOf.set(index, slot);
    return Object.freeze({ kind: 'parameter', slot, type });
  }

  /** Type OIDs of `$1 … $n`. @throws QueryError E0511 where nothing says what type one has */
  oids(): readonly number[] {
    const oids = this.#types.map((type, i) => {
      const declared = this.#declared[i] ?? null;
      if (declared !== null) return declared.oid;
      if (type === null) throw this.#error('parameterType', { index: i + 1 }, this.#places.get(i + 1));
      return oidOf(type);
    });
    return Object.freeze(oids);
  }
}
