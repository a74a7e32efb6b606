import { StreamLanguage, type StreamParser } from '@codemirror/language';
import { KEYWORDS } from './keywords.js';

interface State {
  /** How deep comments stand within each other. */
  comment: number;
}

const WORDS: ReadonlySet<string> = new Set(KEYWORDS);
const OPERATORS: ReadonlySet<string> = new Set(['retrieve', 'traverse', 'measure', 'evidence']);

/** Only colours: what a text means, the gateway says. */
const PARSER: StreamParser<State> = {
  name: 'osl-sql',
  startState: () => ({ comment: 0 }),
  token(stream, state) {
    if (state.comment > 0) return inComment(stream, state);
    if (stream.eatSpace()) return null;
    if (stream.match('--')) {
      stream.skipToEnd();
      return 'comment';
    }
    if (stream.match('/*')) {
      state.comment = 1;
      return inComment(stream, state);
    }
    if (stream.match(/^'(?:[^']|'')*'?/)) return 'string';
    if (stream.match(/^"(?:[^"]|"")*"?/)) return 'variableName';
    if (stream.match(/^\$\d+/)) return 'atom';
    if (stream.match(/^\d+(?:\.\d+)?(?:e[+-]?\d+)?/i)) return 'number';
    const word = stream.match(/^[\p{L}_][\p{L}\p{N}_$]*/u);
    if (word === null || word === true) {
      stream.next();
      return null;
    }
    const name = word === false ? '' : word[0].toLowerCase();
    if (OPERATORS.has(name)) return 'keyword';
    if (/^(?:true|false|null)$/.test(name)) return 'atom';
    if (WORDS.has(name)) return 'keyword';
    return /^\s*\(/.test(stream.string.slice(stream.pos)) ? 'variableName.function' : 'variableName';
  },
  languageData: { commentTokens: { line: '--', block: { open: '/*', close: '*/' } } },
};

function inComment(stream: Parameters<StreamParser<State>['token']>[0], state: State): string {
  while (state.comment > 0 && !stream.eol()) {
    if (stream.match('*/')) state.comment -= 1;
    else if (stream.match('/*')) state.comment += 1;
    else stream.next();
  }
  return 'comment';
}

export const OSL_SQL = StreamLanguage.define(PARSER);
