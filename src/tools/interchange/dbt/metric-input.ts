import { CODES } from '../../../model/manifest/index.js';
import { type Item, Part } from '../part.js';
import { shown } from '../shown.js';
import { NoFit } from '../sql/expression.js';

/** A measure or a metric as another is made of it. */
export interface Input {
  readonly name: string;
  /** What it is called in an expression. */
  readonly alias: string;
  readonly filters: readonly string[];
  readonly part: Part;
}

/** The input under `key`: a name, or a mapping. @throws NoFit */
export function inputAt(part: Part, key: string): Input {
  if (part.isText(key)) {
    const name = part.text(key) ?? '';
    return { name, alias: name, filters: [], part };
  }
  const input = part.child(key);
  if (input === null) throw new NoFit(`it has no \`${key}\``);
  return inputOf(input);
}

/** The inputs in the list under `key`: names and mappings. @throws NoFit */
export function inputsAt(part: Part, key: string): readonly Input[] {
  return part.items(key).flatMap((item) => listed(item, part, key));
}

function listed(item: Item, part: Part, key: string): readonly Input[] {
  if (item instanceof Part) return [inputOf(item)];
  if (typeof item === 'string') return [{ name: item, alias: item, filters: [], part }];
  part.problem(key, CODES.wrongType, `\`${shown(key)}\` lists names and mappings, not \`${item}\``);
  return [];
}

/** @throws NoFit for an input of another time, and for one whose gaps are filled */
export function inputOf(input: Part): Input {
  const name = input.needText('name');
  const alias = input.text('alias') ?? name;
  const filters = filtersAt(input);
  for (const key of ['offset_window', 'offset_to_grain'])
    if (input.has(key)) throw new NoFit(`an input of another time (\`${key}\`) has no counterpart`);
  if (input.has('fill_nulls_with'))
    throw new NoFit('`fill_nulls_with` has no counterpart in a metric: use coalesce in one derived of it');
  if (input.flag('join_to_timespine') === true)
    input.note('join_to_timespine', 'approximated', 'only running totals have a row for every period');
  return { name, alias, filters, part: input };
}

/** A filter as one text, a list of texts, or as the compiled manifest has it. */
export function filtersAt(part: Part): readonly string[] {
  if (!part.has('filter')) return [];
  if (part.isText('filter') || part.isList('filter')) return part.texts('filter');
  const filter = part.child('filter');
  return (filter?.parts('where_filters') ?? []).map((f) => f.needText('where_sql_template'));
}
