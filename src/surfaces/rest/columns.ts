import type { GovernedPlan, OutputColumn } from 'osl-compiler';

/**
 * The columns of an answer, with names that can be keys of one JSON object: of equal names the second becomes
 * `name_2`, the third `name_3`, passing over what is a column's own name.
 */
export function columnsOf(plan: GovernedPlan): readonly OutputColumn[] {
  const own = new Set(plan.outputs.map((o) => o.name));
  const taken = new Set<string>();
  // Of each name the suffix that was tried last: no later output of it finds an earlier one free.
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
 * A column as JSON describes it and its values: the key that a passage carries is a string there, whatever its type.
 *
 * @param redacted whether something in it is
 */
export function describedColumn({ name, type, source, passageKey, format }: OutputColumn, redacted: boolean) {
  const shown = format === null ? {} : { format };
  return { name, type: passageKey ? ('text' as const) : type, source, redacted, ...shown };
}
