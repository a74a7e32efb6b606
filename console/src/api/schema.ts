import { useEffect, useState } from 'react';
import type { Schema } from '../../../clients/typescript/types.js';
import type { Caller } from './caller.js';
import { getJson } from './http.js';

export type { Schema };

const known = new WeakMap<Caller, Promise<Schema>>();

/** What `caller` may ask about, asked for once. @throws as `getJson` */
export function schemaOf(caller: Caller): Promise<Schema> {
  const asked = known.get(caller) ?? getJson<Schema>(caller, '/osl/schema?governed=true');
  known.set(caller, asked);
  asked.catch(() => known.delete(caller));
  return asked;
}

/** The schema of `caller`; null before it has come, and where it cannot be had. */
export function useSchema(caller: Caller): Schema | null {
  const [schema, setSchema] = useState<Schema | null>(null);
  useEffect(() => {
    let isCurrent = true;
    setSchema(null);
    schemaOf(caller).then(
      (read) => isCurrent && setSchema(read),
      () => undefined,
    );
    return () => {
      isCurrent = false;
    };
  }, [caller]);
  return schema;
}
