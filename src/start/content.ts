import { queryError } from 'osl-compiler';
import type { ContentPlane } from '../spine/content-plane.js';

/** Stands where no content is indexed: every retrieval is refused. */
export function noContent(): ContentPlane {
  const refuse = (): never => {
    throw queryError('unresolvable', { detail: 'no content is indexed', hint: 'run `osl index`' });
  };
  return {
    lexicalQuery: refuse,
    embedQuery: async () => refuse(),
    hasDecoder: false,
    run: async () => refuse(),
  };
}
