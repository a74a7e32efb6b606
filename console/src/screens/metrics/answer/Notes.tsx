import type { Answer } from '../../../../../clients/typescript/types.js';
import { notesOf } from './notes.js';

/** What one should know of an answer: what is masked in it, what is left out, how old it is. */
export function Notes({ answer }: { readonly answer: Answer }) {
  return (
    <ul className="answer-notes">
      {notesOf(answer).map((note) => (
        <li key={note}>{note}</li>
      ))}
      <li className="answer-request">request {answer.request_id}</li>
    </ul>
  );
}
