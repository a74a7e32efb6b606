import type { GovernedPlan, OutputColumn } from 'osl-compiler';

/**
 * Columns of an answer with names that are unique keys of a JSON object: the second of equal names becomes `name_2`,
 * the third `name_3`, skipping names of other columns.
 */
export function columnsOf(plan: GovernedPlan): readonly OutputColumn[] {
  const own = new Set(plan.outputs.map((o) => o.name));
  const taken = new Set<string>();
  // Last suffix per name: lower ones are taken.
  const last = new Map<string, number>();
  return plan.outputs.map((output) => {
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

/**
 * JSON description of a column. The key of a passage is a string in JSON, whatever its type.
 *
 * @param redacted true if some value of it is
 */
export function describedColumn({ name, type, source, passageKey, format }: OutputColumn, redacted: boolean) {
  const shown = format === null ? {} : { format };
  return { name, type: passageKey ? ('text' as const) : type, source, redacted, ...shown };
}
