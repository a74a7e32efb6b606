import { InternalError, type Slot, valuesOf } from 'osl-compiler';
import type { BoundValue } from '../../../engine/index.js';
import type { RuntimeRows, StepInput } from '../parts.js';

/** Values of `slots`, in order: from the caller, the policy, and earlier steps. */
export function slotValues(
  slots: readonly Slot[],
  given: ReadonlyMap<string, string>,
  { parts, caller, parameters }: Pick<StepInput, 'parts' | 'caller' | 'parameters'>,
  runtime: readonly RuntimeRows[] = [],
): readonly BoundValue[] {
  const rowsAt = (index: number): RuntimeRows => {
    const rows = runtime[index];
    if (rows === undefined) throw new InternalError(`runtime relation ${index} was not worked out`);
    return rows;
  };
  return valuesOf<BoundValue>(slots, {
    text: textParameter,
    client: (index) => parameters[index],
    attribute: (subject, name) => caller.access.attributeValues(subject, name),
    pad: (pad, domain) => parts.maskKeys.pad(pad, domain),
    given: (name) => {
      const value = given.get(name);
      if (value === undefined) throw new InternalError(`no step gives \`${name}\``);
      return value;
    },
    runtime: (index) => rowsAt(index).json,
    keys: (index, column) => rowsAt(index).keys(column),
  });
}

export function textParameter(value: string): BoundValue {
  return { format: 0, bytes: Buffer.from(value, 'utf8') };
}
