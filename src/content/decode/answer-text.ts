import { DecoderFailure } from './failure.js';

const FENCE = '```';
const THOUGHT = ['<think>', '</think>'] as const;

/**
 * The JSON of an answer, also where the model thought aloud before it, or put it between fences, as many do where the
 * server does not hold them to a schema.
 *
 * @throws DecoderFailure `malformedAnswer`
 */
export function jsonOf(content: string): unknown {
  const text = withoutThought(content).trim();
  const parsed = parse(text);
  if (parsed !== NONE) return parsed;
  const fenced = betweenFences(text);
  const inner = fenced === null ? NONE : parse(fenced);
  if (inner !== NONE) return inner;
  throw new DecoderFailure('malformedAnswer', 'the model answered something that is not JSON');
}

const NONE = Symbol('no JSON');

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return NONE;
  }
}

function withoutThought(content: string): string {
  const [begin, end] = THOUGHT;
  if (!content.trimStart().startsWith(begin)) return content;
  const at = content.indexOf(end);
  return at < 0 ? content : content.slice(at + end.length);
}

/** What stands between the first fence, without the language that it names, and the last one. */
function betweenFences(text: string): string | null {
  const begin = text.indexOf(FENCE);
  const end = text.lastIndexOf(FENCE);
  if (begin < 0 || end <= begin) return null;
  return text.slice(begin + FENCE.length, end).replace(/^[a-z]{0,16}\s/i, '');
}
