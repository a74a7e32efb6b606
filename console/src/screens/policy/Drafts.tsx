import { useState } from 'react';
import type { Publications } from '../../../../clients/typescript/types.js';
import { adminGet } from '../../api/admin.js';
import { Empty } from '../../parts/Empty.js';
import { ErrorBox } from '../../parts/ErrorBox.js';
import { useLoad } from '../../parts/load/useLoad.js';
import { momentOf } from '../../parts/load/words.js';
import { useSession } from '../../shell/session.js';
import { type Draft, DraftJudged } from './DraftJudged.js';

/** Drafts of the graph, and who would gain and lose by each. */
export function Drafts() {
  const { caller } = useSession();
  const [chosen, setChosen] = useState<string | null>(null);
  const { value, error, again } = useLoad('drafts', (signal) =>
    adminGet<Publications>(caller, '/osl/objects', {}, signal),
  );
  if (error !== null)
    return (
      <div className="policy-pad">
        <ErrorBox error={error} fix={{ label: 'Try again', take: again }} />
      </div>
    );
  if (value === null) return <p className="quiet policy-pad">Loading drafts …</p>;
  if (value.drafts.length === 0)
    return (
      <Empty
        title="No drafts"
        text="A draft is a saved change that is checked before it is published: osl publish --draft, or POST /osl/objects."
      />
    );
  const draft = value.drafts.find(({ id }) => id === chosen) ?? null;
  return (
    <div className="split">
      <ul className="split-list" aria-label="Drafts">
        {value.drafts.map((one) => (
          <li key={one.id}>
            <button
              type="button"
              className="plain wide item"
              aria-pressed={one.id === chosen}
              onClick={() => setChosen(one.id)}
            >
              <span className="item-title">{nameOf(one)}</span>
              <span className="item-state">{one.state}</span>
              <span className="quiet">
                {one.author.subject}, {momentOf(one.at).slice(0, 16)}
              </span>
            </button>
          </li>
        ))}
      </ul>
      <div className="split-main">
        {draft === null ? (
          <Empty
            title="Choose a draft"
            text="The draft is validated as if it were published, and marked as valid if it could be. Nothing is published."
          />
        ) : (
          <DraftJudged key={draft.id} draft={draft} name={nameOf(draft)} />
        )}
      </div>
    </div>
  );
}

function nameOf({ id }: Draft): string {
  return `Draft ${id.slice(0, 8)}`;
}
