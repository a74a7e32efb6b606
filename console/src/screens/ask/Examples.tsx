import type { LoadedSchema } from '../../api/schema.js';
import { Empty } from '../../parts/Empty.js';
import { Loading } from '../../parts/load/Loaded.js';
import { NoAccess, SchemaFault } from '../../parts/SchemaFault.js';
import { examplesOf } from './examples-of.js';

interface ExamplesProps {
  readonly known: LoadedSchema;
  readonly onTake: (text: string) => void;
}

/** Shown before the first query: examples that this caller can run unchanged. */
export function Examples({ known: { schema, error, again }, onTake }: ExamplesProps) {
  if (error !== null)
    return <SchemaFault title="The schema could not be loaded" error={error} again={again} />;
  if (schema === null) return <Loading what="the schema" />;
  const examples = examplesOf(schema);
  if (examples.length === 0) return <NoAccess />;
  return (
    <Empty title="Query your data" text="Write a query, or start with one of these.">
      <ul className="ask-examples">
        {examples.map(({ about, text }) => (
          <li key={text}>
            <button type="button" onClick={() => onTake(text)}>
              <span>{about}</span>
              <code>{text}</code>
            </button>
          </li>
        ))}
      </ul>
    </Empty>
  );
}
