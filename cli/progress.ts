import { note } from './output.js';

export interface Progress {
  step(name: string, done?: number, total?: number, more?: string): void;
  end(): void;
}

export async function createProgress(): Promise<Progress> {
  return process.stderr.isTTY ? bar() : lines();
}

async function bar(): Promise<Progress> {
  const { default: cliProgress } = await import('cli-progress');
  const shown = new cliProgress.SingleBar(
    { format: '  {name} {bar} {value}/{total}', hideCursor: true, clearOnComplete: true, barsize: 30 },
    cliProgress.Presets.shades_grey,
  );
  let active = false;
  const end = (): void => {
    if (active) shown.stop();
    active = false;
  };
  return {
    step(name, done = 0, total = 0, more = '') {
      if (total === 0) {
        end();
        note(`${name} …`);
        return;
      }
      const label = { name: `${name}${more}`.padEnd(20) };
      if (!active) shown.start(total, done, label);
      active = true;
      shown.setTotal(total);
      shown.update(done, label);
    },
    end,
  };
}

const LINE_EVERY_MS = 5_000;

function lines(): Progress {
  let last = '';
  let told = 0;
  return {
    step(name, done = 0, total = 0, more = '') {
      const now = performance.now();
      if (name !== last) note(`${name} …`);
      else if (total > 0 && now - told >= LINE_EVERY_MS) note(`${name}: ${done} of ${total}${more}`);
      else return;
      last = name;
      told = now;
    },
    end: () => undefined,
  };
}
