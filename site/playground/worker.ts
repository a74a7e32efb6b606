/** Compiles questions in a thread of its own, so that the page stays responsive. */
import { ready } from 'osl-compiler';
import { compileQuestion, type PlaygroundResult } from './compile-question.js';
import type { Playground } from './state.js';

export interface CompileRequest {
  readonly id: number;
  readonly input: Playground;
}

/** `failed`: the message of a fault in the playground itself; null if there was none. */
export interface CompileReply {
  readonly id: number;
  readonly result: PlaygroundResult | null;
  readonly failed: string | null;
}

const loaded = ready();

async function reply({ id, input }: CompileRequest): Promise<CompileReply> {
  try {
    await loaded;
    return { id, result: compileQuestion(input, Date.now()), failed: null };
  } catch (error) {
    return { id, result: null, failed: error instanceof Error ? error.message : String(error) };
  }
}

self.addEventListener('message', async ({ data }: MessageEvent<CompileRequest>) => {
  self.postMessage(await reply(data));
});
