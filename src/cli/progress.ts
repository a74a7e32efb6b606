import cliProgress from 'cli-progress';
import { note } from './output.js';

/** Shows how far a long step is: a bar on a terminal, else one line a step. All on standard error. */
export interface Progress {
  /** A step without measure begins, or a measured one goes on. */
  step(name: string, done?: number, total?: number): void;
  end(): void;
}

export function createProgress(): Progress {
  return process.stderr.isTTY ? bar() : lines();
}

function bar(): Progress {
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
    step(name, done = 0, total = 0) {
      if (total === 0) {
        end();
        note(`${name} …`);
        return;
      }
      if (!active) shown.start(total, done, { name: name.padEnd(20) });
      active = true;
      shown.setTotal(total);
      shown.update(done, { name: name.padEnd(20) });
    },
    end,
  };
}

function lines(): Progress {
  let last = '';
  return {
    step(name) {
      if (name !== last) note(`${name} …`);
      last = name;
    },
    end: () => undefined,
  };
}
