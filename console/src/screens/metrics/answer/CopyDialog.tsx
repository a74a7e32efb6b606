import { useState } from 'react';
import { Dialog } from '../../../parts/Dialog.js';

export interface CopyDialogProps {
  readonly title: string;
  readonly text: string;
  readonly onClose: () => void;
}

/** A text to take along. Where the browser lets no page write to its clipboard, it can be selected and copied. */
export function CopyDialog({ title, text, onClose }: CopyDialogProps) {
  const [said, setSaid] = useState('');
  const copy = (): void => {
    const written = navigator.clipboard?.writeText(text) ?? Promise.reject(new Error('no clipboard'));
    written.then(
      () => setSaid('Copied.'),
      () => setSaid('The browser does not allow it: select the text and copy it.'),
    );
  };
  return (
    <Dialog title={title} open onClose={onClose}>
      <div className="copied">
        <textarea
          aria-label={title}
          readOnly
          rows={Math.min(18, text.split('\n').length + 1)}
          value={text}
          onFocus={(e) => e.target.select()}
        />
        <div className="copied-row">
          <button type="button" className="primary" onClick={copy}>
            Copy
          </button>
          <span role="status" className="quiet">
            {said}
          </span>
        </div>
        <p className="quiet">
          It holds the question, no answer and no token: whoever asks it sees what their own rights show.
        </p>
      </div>
    </Dialog>
  );
}
