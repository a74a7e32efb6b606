import { withBase } from 'vitepress';
import { defineComponent, h, onMounted, onUnmounted, ref } from 'vue';
import type { Example } from '../../playground/view.js';
import './playground.css';

declare const PLAYGROUND_EXAMPLES: readonly Example[];

/** Place of the playground, which opens there once the page is in a browser. */
export const Playground = defineComponent(() => {
  const host = ref<HTMLElement | null>(null);
  let close: (() => void) | null = null;
  onMounted(async () => {
    const { openPlayground } = await import('../../playground/view.js');
    if (host.value !== null)
      close = openPlayground(host.value, {
        examples: PLAYGROUND_EXAMPLES,
        errors: withBase('/errors.html'),
      });
  });
  onUnmounted(() => close?.());
  return () => h('div', { ref: host, class: 'pg' }, 'The playground needs JavaScript.');
});
