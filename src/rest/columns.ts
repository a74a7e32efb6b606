import type { GovernedPlan, OutputColumn } from 'osl-compiler';

/**
 * The columns of an answer, with names that can be keys of one JSON object: of equal names the second becomes
 * `name_2`, the third `name_3`, passing over what is a column's own name.
 */
export function columnsOf(plan: GovernedPlan): readonly OutputColumn[] {
  const own = new Set(plan.outputs.map((o) => o.name));
  const taken = new Set<string>();
  return plan.outputs.map((output) => {
    let name = output.name;
    for (let n = 2; taken.has(name); n++) {
      const next = `${output.name}_${n}`;
      name = own.has(next) ? name : next;
    }
    taken.add(name);
    return { name, type: output.type, source: output.source, redacted: output.redacted };
  });
}
