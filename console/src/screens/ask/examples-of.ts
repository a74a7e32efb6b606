import { identifier, quoteLiteral } from 'osl-compiler/sql-text';
import type { Schema } from '../../../../clients/typescript/types.js';

interface ExampleQuestion {
  readonly about: string;
  readonly text: string;
}

const MOST = 6;

/** Builds example queries from the schema, starting with one of each kind. */
export function examplesOf({
  entities,
  facets,
  metrics,
}: Pick<Schema, 'entities' | 'facets' | 'metrics'>): readonly ExampleQuestion[] {
  const rows = entities.flatMap(({ name, examples }) => {
    const [text] = examples;
    return text === undefined ? [] : [{ about: `rows of ${name}`, text }];
  });
  const masked = entities.flatMap(({ name, columns }) => {
    const hidden = columns.find((column) => column.masked !== 'none' && column.use === 'rows');
    const shown = columns.find(
      (column) => column.masked === 'none' && column.use === 'rows' && column !== hidden,
    );
    if (hidden === undefined || shown === undefined) return [];
    const text = `select ${identifier(shown.name)}, ${identifier(hidden.name)} from osl.entities.${identifier(name)} limit 20`;
    return [{ about: `${name}, with a masked column`, text }];
  });
  const grouped = metrics.flatMap(({ name, entity, measurable }) => {
    const of = entities.find((one) => one.name === entity);
    const by = of?.columns.find(
      (c) =>
        c.type === 'text' &&
        c.masked === 'none' &&
        c.use === 'rows' &&
        !of.primary_key.includes(c.name) &&
        /class|kind|type|region|status|state|category/i.test(c.name),
    );
    if (!measurable || of === undefined || by === undefined) return [];
    const group = identifier(by.name);
    const text = `select ${group}, measure(${identifier(name)}) as ${identifier(name)} from osl.entities.${identifier(of.name)} group by ${group} order by 2 desc`;
    return [{ about: `${name} by ${by.name}, as a chart`, text }];
  });
  const found = facets.flatMap(({ name }) => [
    {
      about: `passages of ${name}, highlighted`,
      text: `select text, score, cite, highlights from RETRIEVE(facet => ${quoteLiteral(name)}, query => 'how to begin', top_k => 5, highlight => true)`,
    },
  ]);
  const first = [rows[0], masked[0], grouped[0], found[0]].filter((one) => one !== undefined);
  const others = [...rows, ...grouped, ...masked].filter((one) => !first.includes(one));
  return [...first, ...others].slice(0, MOST).filter(({ text }) => /^[\x20-\x7e\n]+$/.test(text));
}
