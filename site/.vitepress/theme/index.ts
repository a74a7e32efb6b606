import type { Theme } from 'vitepress';
import DefaultTheme from 'vitepress/theme-without-fonts';
import { defineAsyncComponent } from 'vue';
import './style.css';

const theme: Theme = {
  extends: DefaultTheme,
  enhanceApp({ app }) {
    app.component(
      'Playground',
      defineAsyncComponent(() => import('./playground.js').then((m) => m.Playground)),
    );
  },
};

// biome-ignore lint/style/noDefaultExport: VitePress reads it.
export default theme;
