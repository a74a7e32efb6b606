import { execFile } from 'node:child_process';
import type { TokenSource } from './relay.js';

const COMMAND_MS = 30_000;

/** Runs `command` in a shell for each token; it prints the token and nothing else. */
export function tokensOfCommand(command: string): TokenSource {
  return async () => {
    const token = await outputOf(command);
    return { token, subject: subjectOf(token) };
  };
}

function outputOf(command: string): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile('/bin/sh', ['-c', command], { timeout: COMMAND_MS }, (error, out, err) => {
      // What the command printed to its output may be a token: only what it said of the fault is shown.
      if (error !== null)
        reject(new Error(`the token command failed: ${err.trim().split('\n').at(-1) ?? ''}`));
      else resolve(out.trim());
    });
  });
}

/** The `sub` of a token, unverified: the server compares it with the signed one. @throws Error */
export function subjectOf(token: string): string {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));
    if (typeof claims === 'object' && claims !== null && 'sub' in claims && typeof claims.sub === 'string')
      return claims.sub;
  } catch {
    // said below: the text is no token, whatever it is
  }
  throw new Error('the token command printed no actor token');
}
