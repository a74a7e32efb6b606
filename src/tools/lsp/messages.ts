import type { FunctionEntry } from '../../model/graph/language.js';
import type { Diagnostic } from '../../model/manifest/index.js';
import type { Project } from './check.js';
import type { Names } from './names.js';
import type { QuestionFault } from './questions.js';

/** What the checking thread is asked. */
export type Task =
  | {
      readonly kind: 'check';
      readonly project: Project;
      /** Texts that are open in the editor, by file. */
      readonly open: readonly (readonly [file: string, text: string])[];
    }
  | { readonly kind: 'sights'; readonly manifestFile: string; readonly object: string }
  | {
      readonly kind: 'questions';
      readonly manifestFile: string;
      readonly text: string;
      readonly subject: string | null;
    };

/** What it answers. */
export interface Results {
  readonly check: {
    readonly diagnostics: readonly Diagnostic[];
    readonly names: Names | null;
    readonly functions: readonly FunctionEntry[];
  };
  /** Markdown; null where there is nothing to say. */
  readonly sights: string | null;
  /** Null where no manifest that is right has been checked. */
  readonly questions: readonly QuestionFault[] | null;
}

export interface Asked {
  readonly id: number;
  readonly task: Task;
}

export type Answered =
  | { readonly id: number; readonly result: Results[Task['kind']] }
  | { readonly id: number; readonly failed: string };
