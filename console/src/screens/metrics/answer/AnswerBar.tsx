import { useState } from 'react';
import { CopyText } from '../../../parts/CopyText.js';
import { Dialog } from '../../../parts/Dialog.js';
import { bodyOf } from '../choice/body.js';
import {
  type Choice,
  COMPARISONS,
  type ComparedPeriod,
  keyOf,
  LIMITS,
  type Order,
  oneOf,
} from '../choice/choice.js';
import { curlOf, jsonOf } from './table.js';

interface AnswerBarProps {
  readonly choice: Choice;
  readonly onChoice: (choice: Choice) => void;
  readonly onAdd: () => void;
}

const WORDS: Readonly<Record<ComparedPeriod, string>> = {
  none: 'no comparison',
  previous_period: 'previous period',
  previous_year: 'previous year',
};

/** Controls for comparison, order, number of rows and export of the answer. */
export function AnswerBar({ choice, onChoice, onAdd }: AnswerBarProps) {
  const [copied, setCopied] = useState<{ readonly title: string; readonly text: string } | null>(null);
  const names = [...choice.metrics, ...choice.groups.map(keyOf)];
  const body = bodyOf(choice);
  return (
    <div className="answer-bar">
      <label>
        Compare with
        <select
          value={choice.compare}
          onChange={(e) => onChoice({ ...choice, compare: oneOf(COMPARISONS, e.target.value) ?? 'none' })}
        >
          {COMPARISONS.map((one) => (
            <option key={one} value={one}>
              {WORDS[one]}
            </option>
          ))}
        </select>
      </label>
      {choice.groups.length > 0 && (
        <>
          <label>
            Order
            <select
              value={choice.order === null ? '' : signed(choice.order)}
              onChange={(e) => onChoice({ ...choice, order: orderOf(e.target.value) })}
            >
              <option value="">automatic</option>
              {names.flatMap((name) => [
                <option key={`-${name}`} value={`-${name}`}>
                  {name} ↓
                </option>,
                <option key={name} value={name}>
                  {name} ↑
                </option>,
              ])}
            </select>
          </label>
          <label>
            Rows
            <select
              value={choice.limit}
              onChange={(e) => onChoice({ ...choice, limit: Number(e.target.value) })}
            >
              {[...new Set([...LIMITS, choice.limit])].map((limit) => (
                <option key={limit}>{limit}</option>
              ))}
            </select>
          </label>
        </>
      )}
      <fieldset className="answer-copies">
        <legend className="hidden">Export</legend>
        <button type="button" onClick={onAdd}>
          Add to dashboard
        </button>
        <button
          type="button"
          onClick={() => setCopied({ title: 'curl', text: curlOf(body, location.origin) })}
        >
          curl
        </button>
        <button type="button" onClick={() => setCopied({ title: 'JSON body', text: jsonOf(body) })}>
          JSON
        </button>
        <button type="button" onClick={() => setCopied({ title: 'Link', text: location.href })}>
          Share link
        </button>
      </fieldset>
      {copied !== null && <CopyDialog {...copied} onClose={() => setCopied(null)} />}
    </div>
  );
}

function signed({ name, descending }: Order): string {
  return `${descending ? '-' : ''}${name}`;
}

function orderOf(text: string): Order | null {
  return text === '' ? null : { name: text.replace(/^-/, ''), descending: text.startsWith('-') };
}

interface CopyDialogProps {
  readonly title: string;
  readonly text: string;
  readonly onClose: () => void;
}

function CopyDialog({ title, text, onClose }: CopyDialogProps) {
  return (
    <Dialog title={title} open onClose={onClose}>
      <div className="stack">
        <CopyText label={title} text={text} />
        <p className="quiet">
          It holds the question, no answer and no token: whoever asks it sees what their own rights show.
        </p>
      </div>
    </Dialog>
  );
}
