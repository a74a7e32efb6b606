import { useState } from 'react';
import type { LoadedSchema } from '../../api/schema.js';
import { Empty, NoAccess, SchemaFault } from '../../parts/Empty.js';
import { Loading } from '../../parts/load/Loaded.js';
import { Tabs } from '../../parts/Tabs.js';
import { examplesOf } from './examples-of.js';
import type { LibraryEntry, LibraryState, QuestionDraft, SavedQuery } from './library.js';

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
      {tab === 'history' ? (
        <History history={history} onTake={onTake} onForget={library.forgetHistory} />
      ) : (
        <SavedList saved={saved} onTake={onTake} onForget={library.forget} />
      )}
    </Tabs>
  );
}

interface HistoryProps {
  readonly history: readonly LibraryEntry[];
  readonly onTake: (draft: QuestionDraft) => void;
  readonly onForget: () => void;
}

function History({ history, onTake, onForget }: HistoryProps) {
  if (history.length === 0) return <p className="quiet ask-none">No queries yet.</p>;
  return (
    <>
      <ul className="ask-kept">
        {history.map((kept) => (
          <li key={`${kept.kind} ${kept.text}`}>
            <button type="button" onClick={() => onTake(kept)}>
              <code>{kept.text}</code>
              <time className="quiet">{new Date(kept.at).toLocaleString()}</time>
            </button>
          </li>
        ))}
      </ul>
      <button type="button" onClick={onForget}>
        Forget all
      </button>
    </>
  );
}

interface SavedListProps {
  readonly saved: readonly SavedQuery[];
  readonly onTake: (draft: QuestionDraft) => void;
  readonly onForget: (name: string) => void;
}

function SavedList({ saved, onTake, onForget }: SavedListProps) {
  if (saved.length === 0) return <p className="quiet ask-none">No saved queries yet.</p>;
  return (
    <ul className="ask-kept">
      {saved.map((one) => (
        <li key={one.name}>
          <button type="button" onClick={() => onTake(one)}>
            <strong>{one.name}</strong>
            <code>{one.text}</code>
          </button>
          <button
            type="button"
            className="plain"
            onClick={() => onForget(one.name)}
            aria-label={`Forget ${one.name}`}
          >
            ✕
          </button>
        </li>
      ))}
    </ul>
  );
}

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
