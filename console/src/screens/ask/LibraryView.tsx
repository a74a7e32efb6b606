import { useState } from 'react';
import type { LoadedSchema } from '../../api/schema.js';
import { Empty, NoAccess, SchemaFault } from '../../parts/Empty.js';
import { Loading } from '../../parts/load/Loaded.js';
import { Tabs } from '../../parts/Tabs.js';
import { examplesOf } from './examples-of.js';
import type { LibraryState, QuestionDraft } from './library.js';

interface LibraryViewProps {
  readonly library: LibraryState;
  readonly onTake: (draft: QuestionDraft) => void;
}

/** Query history and saved queries. */
export function LibraryView({ library, onTake }: LibraryViewProps) {
  const [tab, setTab] = useState<'history' | 'saved'>(library.library.saved.length > 0 ? 'saved' : 'history');
  const { history, saved } = library.library;
  return (
    <Tabs
      label="Questions"
      tabs={[
        { name: 'history', title: `Asked (${history.length})` },
        { name: 'saved', title: `Saved (${saved.length})` },
      ]}
      chosen={tab}
      onChoose={setTab}
    >
      {(tab === 'history' ? history : saved).length === 0 && (
        <p className="quiet ask-none">{tab === 'history' ? 'No queries yet.' : 'No saved queries yet.'}</p>
      )}
      <ul className="ask-kept">
        {tab === 'history'
          ? history.map((kept) => (
              <li key={`${kept.kind} ${kept.text}`}>
                <button type="button" onClick={() => onTake(kept)}>
                  <code>{kept.text}</code>
                  <time className="quiet">{new Date(kept.at).toLocaleString()}</time>
                </button>
              </li>
            ))
          : saved.map((kept) => (
              <li key={kept.name}>
                <button type="button" onClick={() => onTake(kept)}>
                  <strong>{kept.name}</strong>
                  <code>{kept.text}</code>
                </button>
                <button
                  type="button"
                  className="plain"
                  onClick={() => library.forget(kept.name)}
                  aria-label={`Forget ${kept.name}`}
                >
                  ✕
                </button>
              </li>
            ))}
      </ul>
      {tab === 'history' && history.length > 0 && (
        <button type="button" onClick={library.forgetHistory}>
          Forget all
        </button>
      )}
    </Tabs>
  );
}

interface ExamplesProps {
  readonly known: LoadedSchema;
  readonly onTake: (text: string) => void;
}

/** Examples shown before the first query; this caller can run them unchanged. */
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
