import type { ErrorName, ErrorParameters, QueryError } from '../errors/errors.js';
import type { Parameter, Slot } from '../plan/plan.js';
import type { DeclaredType } from '../types/declared-types.js';
import { oidOf, type TypeName } from '../types/types.js';
import type { Location } from './ast.js';

type MakeError = <N extends ErrorName>(name: N, parameters: ErrorParameters<N>, at: Location) => QueryError;

/** Types and slots of the client's `$1 … $n`. Each type is declared, or set by the first use. */
export class ClientParameters {
  readonly #declared: readonly (DeclaredType | null)[];
  readonly #slots: Slot[];
  readonly #error: MakeError;
  readonly #types: (TypeName | null)[];
  readonly #slotOf = new Map<number, number>();
  readonly #places = new Map<number, Location>();

  constructor(declared: readonly (DeclaredType | null)[], slots: Slot[], error: MakeError) {
    this.#declared = declared;
    this.#slots = slots;
    this.#error = error;
    this.#types = declared.map((d) => (d === null || d.kind === 'foreign' ? null : d.type));
  }

  /** Parameter `$n` (from 1). The first use determines its type. */
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

  /** Type of `$n`, if known yet. @throws QueryError E0511 if it is declared with a type that only a cast may use */
  typeOf(number: number, location: Location): TypeName | null {
    if (!this.#places.has(number)) this.#places.set(number, location);
    const foreign = this.#foreign(number);
    if (foreign !== null) throw this.#declaredAs(foreign, number, location);
    return this.#types[number - 1] ?? null;
  }

  /**
   * Parameter for `$n::type` if `$n` is declared with a type that only a cast may use; else null.
   *
   * @throws QueryError E0511 if the cast is not allowed
   */
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
    const type = sql.replace('"bit"', 'bit'); // the type is quoted for the grammar
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

  /** Type OIDs of `$1 … $n`. @throws QueryError E0511 if a type is undetermined */
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
