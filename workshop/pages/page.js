// What the pictures and questions of the lessons do in the page. It needs no kernel and no other file.
var workshopPage = {
  async explore(box) {
    const bytes = Uint8Array.from(atob(box.dataset.frames), c => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
    const {parts, frames} = await new Response(stream).json();
    const inputs = [...box.querySelectorAll('.controls input')], frame = box.querySelector('.frame');
    const size = input => input.type == 'checkbox' ? 2 : +input.max + 1;
    const stepper = inputs.find(input => 'steps' in input.dataset);
    const most = stepper && +stepper.max;
    const at = () => inputs.reduce((sum, i) => sum * size(i) + (i.type == 'checkbox' ? +i.checked : +i.value), 0);
    // A frame's place counts all values of a control, also those that do not go with the others now.
    const place = value => inputs.reduce((sum, i) => sum * (i === stepper ? most + 1 : size(i)) +
      (i === stepper ? value : i.type == 'checkbox' ? +i.checked : +i.value), 0);
    const show = () => {
      if (stepper) {
        let last = most;
        while (last && !frames[place(last)].length) last--;
        const wanted = Math.min(+stepper.value, last);
        stepper.max = last;
        stepper.value = wanted;
      }
      for (const input of inputs) if (input.type == 'range') {
        const words = JSON.parse(input.dataset.words)[input.value];
        input.setAttribute('aria-valuetext', words);
        input.closest('.row').querySelector('output').textContent = words;
      }
      frame.innerHTML = frames[stepper ? place(+stepper.value) : at()].map(part => parts[part]).join('');
    };
    const first = stepper && stepper.value;
    const play = box.querySelector('[data-do=play]');
    let timer;
    const stop = () => { clearInterval(timer); timer = 0; if (play) play.textContent = '▶ play'; };
    const move = value => { stepper.value = value; show(); };
    const run = () => {
      if (timer) return stop();
      if (stepper.value == stepper.max) move(first);
      play.textContent = '❚❚ stop';
      timer = setInterval(() => {
        if (!box.isConnected) return stop();
        move(+stepper.value + 1);
        if (stepper.value == stepper.max) stop();
      }, 1400);
    };
    const deeds = {play: run, back: () => move(stepper.value - 1), next: () => move(+stepper.value + 1),
      reset: () => { stop(); move(first); }};
    box.querySelectorAll('[data-do]').forEach(button => { button.onclick = deeds[button.dataset.do]; });
    inputs.forEach(input => { input.oninput = show; });
    box.querySelector('.controls').hidden = false;
    frame.setAttribute('aria-live', 'polite');
    show();
  },
  ask(box) {
    // The kernel hears of a choice through pages/bridge.js, if it is alive; the answer unfolds without it.
    const tell = choice => {
      window.workshopFocus = box.dataset.question;
      document.dispatchEvent(new CustomEvent('workshop-choice', {detail: {name: box.dataset.question, choice}}));
    };
    box.querySelectorAll('details[data-choice]').forEach(option => option.addEventListener('toggle', () => {
      if (option.open && !box.dataset.said) {
        box.dataset.said = option.dataset.choice;
        tell(option.dataset.choice);
      }
    }));
    const guess = box.querySelector('input[type=range]');
    if (guess) {
      const shown = box.querySelector('output'), answer = box.querySelector('.answer');
      box.querySelector('.guess').hidden = false;
      box.querySelector('details').hidden = true;
      guess.oninput = () => { shown.textContent = guess.value; };
      guess.onchange = () => {
        answer.textContent = 'You said ' + guess.value + ', ' + answer.dataset.why;
        if (!box.dataset.said) tell(box.dataset.said = guess.value);
      };
    }
    if (window.workshopFocus == box.dataset.question) {
      window.workshopFocus = null;
      (box.querySelector('details[open] summary, input') || box).focus({preventScroll: true});
    }
  },
};
// JupyterLab takes the arrow keys of every output for itself, before the slider that has the focus gets them.
if (!window.workshopKeys) {
  window.workshopKeys = true;
  window.addEventListener('keydown', event => {
    const ours = event.target.matches && event.target.matches('.workshop-picture :is(input, button, summary)');
    if (ours && !event.ctrlKey && !event.metaKey && !event.altKey) event.stopPropagation();
  }, true);
}
