import type { GovernedPlan, OutputColumn, TypeName } from 'osl-compiler';

/**
 * Returns an answer's columns with unique names, usable as keys of a JSON object: the second of several equal names
 * becomes `name_2`, the third `name_3`, skipping names already used by other columns.
 */
export function columnsOf({ outputs }: Pick<GovernedPlan, 'outputs'>): readonly OutputColumn[] {
  const own = new Set(outputs.map((o) => o.name));
  const taken = new Set<string>();
  // Last suffix used per name; lower ones are taken.
  const last = new Map<string, number>();
  return outputs.map((output) => {
    let name = output.name;
    let n = last.get(name) ?? 1;
    while (taken.has(name)) {
      const next = `${output.name}_${++n}`;
      name = own.has(next) ? name : next;
    }
    last.set(output.name, n);
    taken.add(name);
    return { ...output, name };
  });
}

/** The type that a column has in JSON: the key of a passage is always a string there. */
export function shownType({ type, passageKey }: OutputColumn): TypeName {
  return passageKey ? 'text' : type;
}
