"""Public tests of a tiny GPT, which students can read and run. The text is at the end."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from grader.testing import (
    assert_close,
    assert_moves,
    assert_unchanged,
    assert_vectorised,
    assert_written_by_hand,
    expect,
    load_parameters,
    output_of,
    parameter_shapes,
    raises,
    trained,
)

pytestmark = pytest.mark.needs("test_by_hand")

SIZES = (11, 12, 3, 2, 7)  # vocab, d_model, num_heads, num_layers, context_length
EXAMPLE = (3, 2, 1, 1, 2, 0.0)
REFUSALS = "ValueError", "AssertionError", "RuntimeError", "IndexError"
CHARACTERS = "\n ',.?abcdefghijklmnoprstuvwxy"  # the token of a character is its place here


def worked(student):
    """Return the model of the worked example."""
    shapes = parameter_shapes(student.TinyGPT(*EXAMPLE)).items()
    state = {name: torch.zeros(shape) + ("gamma" in name) for name, shape in shapes}
    state["token_embedding.weight"] = torch.tensor([[1.0, 2.0], [3.0, 1.0], [0.0, 2.0]])
    state["position_embedding.weight"] = torch.tensor([[0.0, 1.0], [2.0, 0.0]])
    state["blocks.0.attention.W_value.weight"] = torch.eye(2)
    state["blocks.0.attention.out_proj.weight"] = 3 * torch.eye(2)
    return load_parameters(student.TinyGPT(*EXAMPLE), state)


def random_model(student, rng):
    """Return a model with random parameters."""
    model = student.TinyGPT(*SIZES, 0.0)
    shapes = parameter_shapes(model).items()
    return load_parameters(model, {name: rng.randn(*shape) * 0.5 for name, shape in shapes})


@pytest.mark.points(0)
def test_by_hand(student, rng):
    """The model is made of your own parts, not of torch's Transformer."""
    tokens = rng.randint(0, 11, 2, 5)
    assert_written_by_hand(student, lambda: output_of(student.TinyGPT(*SIZES, 0.0), tokens))


@pytest.mark.points(3)
def test_worked_example(student):
    """The logits, the loss and the texts of the worked example."""
    model = worked(student)
    expected = torch.tensor([[[1.0, -2.0, 2.0], [-1.0, 2.0, -2.0]]], dtype=torch.float64)
    logits = output_of(model, torch.tensor([[0, 1]]))
    assert_close(logits, expected, "the logits", atol=1e-3)
    loss = student.next_token_loss(model, torch.tensor([[0, 1, 1]])).item()
    expect(abs(loss - 2.1962) < 1e-3, f"the loss is {loss:.4f}, where 2.1962 is expected")
    for prompt, text in (([0], [0, 2, 2, 2]), ([0, 1], [0, 1, 1, 1, 1])):
        found = student.generate(model, torch.tensor([prompt]), 3, 0.0)
        assert_close(found, torch.tensor([text]), f"the text after {prompt}")


@pytest.mark.points(2)
def test_parts(student):
    """The model has the parameters of the statement, and no others."""
    found = parameter_shapes(student.TinyGPT(*SIZES, 0.0))
    wanted = {
        "token_embedding.weight": (11, 12),
        "position_embedding.weight": (7, 12),
        "norm.gamma": (12,),
        "norm.beta": (12,),
    }
    others = [name for name in found if name not in wanted and not name.startswith("blocks.")]
    expect(not others, f"these parameters are not expected: {', '.join(others)}")
    for name, shape in wanted.items():
        expect(found.get(name) == shape, f"{name} should have the shape {shape}")
    for layer in range(2):
        shape = found.get(f"blocks.{layer}.feed_forward.linear1.weight")
        expect(shape == (48, 12), f"block {layer} has no feed-forward network of 48 units")


@pytest.mark.points(3)
def test_agrees_with_torch(student, rng):
    """With the same weights, the logits are those of torch's encoder layers."""
    model, tokens = random_model(student, rng), rng.randint(0, 11, 3, 6)
    state = {name: value.detach() for name, value in model.named_parameters()}
    x = state["token_embedding.weight"][tokens] + state["position_embedding.weight"][:6]
    for layer in range(2):
        block = nn.TransformerEncoderLayer(
            12, 3, 48, 0.0, batch_first=True, norm_first=True, dtype=torch.float64
        )
        block.load_state_dict(torch_names(state, f"blocks.{layer}."))
        mask = torch.ones(6, 6).triu(1).bool()
        x = output_of(block.eval(), x, src_mask=mask)
    x = F.layer_norm(x, (12,), state["norm.gamma"], state["norm.beta"])
    assert_close(output_of(model, tokens), x @ state["token_embedding.weight"].T)


def torch_names(state, prefix):
    """Return the parameters of a block under the names that torch's encoder layer gives them."""
    state = {
        name.removeprefix(prefix): each for name, each in state.items() if name.startswith(prefix)
    }
    projections = [state[f"attention.{name}.weight"] for name in ("W_query", "W_key", "W_value")]
    renamed = {
        "self_attn.in_proj_weight": torch.cat(projections),
        "self_attn.in_proj_bias": torch.zeros(36, dtype=torch.float64),
    }
    for kind in ("weight", "bias"):
        renamed[f"self_attn.out_proj.{kind}"] = state[f"attention.out_proj.{kind}"]
        for n in (1, 2):
            renamed[f"linear{n}.{kind}"] = state[f"feed_forward.linear{n}.{kind}"]
    for n in (1, 2):
        renamed[f"norm{n}.weight"] = state[f"norm{n}.gamma"]
        renamed[f"norm{n}.bias"] = state[f"norm{n}.beta"]
    return renamed


@pytest.mark.points(2)
def test_next_token_loss(student, rng):
    """The loss is the cross-entropy of each next token, given the tokens before it."""
    model, windows = random_model(student, rng), rng.randint(0, 11, 3, 8)
    logits = output_of(model, windows[:, :-1].clone())
    expected = F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten())
    assert_close(student.next_token_loss(model, windows).detach(), expected, "the loss")


@pytest.mark.points(2)
def test_random_windows(student):
    """Windows are pieces of the text, from its first place to its last."""
    text = torch.arange(10) * 10
    windows = student.random_windows(text, 400, 4)
    expect(tuple(windows.shape) == (400, 4), f"the windows have the shape {tuple(windows.shape)}")
    starts = windows[:, :1]
    assert_close(windows, starts + torch.arange(4) * 10, "the windows, from their first tokens on,")
    found = starts.flatten().unique().tolist()
    expect(found == [10 * n for n in range(7)], f"windows begin with {found} alone")
    with raises(student, *REFUSALS):
        student.random_windows(text, 3, 11)


@pytest.mark.points(2)
def test_generate(student, rng):
    """generate draws from the top_k, keeps the mode, and refuses what makes no sense."""
    model, prompt = random_model(student, rng), rng.randint(0, 11, 1, 9)
    logits = output_of(model, prompt[:, -7:].clone())[0, -1]
    many = prompt.repeat(500, 1)
    best = set(logits.topk(3).indices.tolist())
    found = set(student.generate(model.train(), many, 1, 50.0, 3)[:, -1].tolist())
    expect(found == best, f"with top_k=3, the tokens {found} are drawn, where {best} are the best")
    expect(model.training is True, "a model in training mode is in another one after generate")
    found = set(student.generate(model, many, 1, 0.0)[:, -1].tolist())
    expect(found == {logits.argmax().item()}, "at temperature 0, another token than the best comes")
    for options in ((-1.0,), (1.0, 0)):
        with raises(student, *REFUSALS):
            student.generate(model, prompt, 1, *options)


@pytest.mark.points(1)
def test_too_many_tokens(student, rng):
    """More tokens than the context is long are refused."""
    model = student.TinyGPT(*SIZES, 0.0)
    tokens = rng.randint(0, 11, 2, 8)
    output_of(model, tokens[:, :-1].clone())
    with raises(student, *REFUSALS):
        output_of(model, tokens)


@pytest.mark.points(0)
def test_whole_tensors(student, rng):
    """No Python loop runs over batch, tokens or windows; devices and views work."""
    model, text = student.TinyGPT(*SIZES, 0.0), rng.randint(0, 11, 40)

    def called(batch, n_tokens):
        return lambda: output_of(model, rng.randint(0, 11, batch, n_tokens))

    more = {"sentences": called(9, 3), "tokens": called(2, 7)}
    assert_vectorised(student, called(2, 3), more)
    more = {"windows": lambda: student.random_windows(text, 20, 3)}
    assert_vectorised(student, lambda: student.random_windows(text, 4, 3), more)
    assert_moves(lambda: student.TinyGPT(*SIZES, 0.0), text[None, :7].clone())
    view = text.view(8, 5).T[:, :4]
    assert_unchanged(student, lambda tokens: output_of(model, tokens), view, names=["tokens"])


@pytest.mark.points(3)
@pytest.mark.needs("test_worked_example", "test_next_token_loss", "test_random_windows")
def test_stories(student):
    """After 500 steps on the stories, the loss on stories that are new is at most 1.2."""

    def train(model, report):
        student.train_gpt(model, encode(TEXT), 500, report=report)

    run = trained(student, "stories", lambda: student.TinyGPT(30, 64, 4, 2, 64, 0.0), train)
    expect(run.losses and run.losses[-1][0] == 500, "report does not hear of step 500")
    windows = encode(NEW).unfold(0, 65, 64).contiguous()
    logits = output_of(run.module, windows[:, :-1].clone())
    loss = F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten()).item()
    expect(loss <= 1.2, f"on new stories, the loss is {loss:.2f}, where 1.2 is asked for")


def encode(text):
    """Return a text as tokens, (n_text,)."""
    return torch.tensor([CHARACTERS.index(character) for character in text])


NEW = """\
the duck and the boat

a duck lived on the lake behind the mill.
one day she saw a boat at the side of the lake.
what is that? asked the duck.
it is a boat, said the frog. the miller sits in it.
why does he sit in it? asked the duck. can he not swim?
you may ask, said the frog, and then you will know.
so the duck went to the miller and asked.
i am old, said the miller, and the water is cold.
and from that day on, the duck went along with the boat.

the wolf and the bridge

a wolf came to the bridge, and on the bridge sat a goat.
may i go over? asked the wolf.
wait until noon, said the goat. i look at the fish.
so the wolf sat down and waited until noon.
at noon the goat was still on the bridge.
wait until the evening, said the goat.
so the wolf sat down and looked at the fish as well.
in the evening they went home, and it did not matter.

the letter of the owl

dear friend, the night is long, and the moon is high.
i sit in the old tree and look at the light in the mill.
the fox reads, and the mouse has a bit of bread.
every night the wolf sings, and i sing with him.
come and see me when the river is low.
your friend, the owl.
"""

TEXT = """\
the fox and the lamp

a fox lived at the edge of the wood, and every night
she saw a light in the window of the mill.
what is that light? asked the fox.
it is a lamp, said the owl. the miller reads by it.
may i have a lamp as well? asked the fox.
you may ask, said the owl, and then you will know.
so the fox went to the mill and asked.
come in, said the miller, and read with me.
and from that day on, the fox had a light at night.

the mouse and the bread

a mouse lived under the floor of the mill.
every morning she found a bit of bread by the door.
who leaves the bread? asked the mouse.
it is the miller, said the cat. he knows you are here.
why does he leave it? asked the mouse.
you may ask, said the cat, and then you will know.
so the mouse went to the miller and asked.
you are small, said the miller, and i have enough.
and from that day on, the mouse was not afraid.

the bear and the river

a bear came to the river, and the river was high.
how do i get to the other side? asked the bear.
wait until the evening, said the duck.
so the bear sat down and waited until the evening.
in the evening the river was still high.
wait until the morning, said the duck.
so the bear sat down and waited until the morning.
in the morning the river was low, and the bear went over.
thank you, said the bear. you are welcome, said the duck.

the hen and the rain

a hen lived in the garden behind the house.
one day the rain came, and it did not stop.
where do i go in the rain? asked the hen.
come under my roof, said the dog. there is room for two.
so the hen went under the roof of the dog.
the rain fell all day, and the rain fell all night.
in the morning the sun came out, and the garden was green.
thank you, said the hen. you are welcome, said the dog.
and from that day on, there was room for two.

the goat and the hill

a goat lived at the foot of the hill.
every day she looked up and saw the top of the hill.
what is on the other side? asked the goat.
i do not know, said the sheep. i was never there.
you may go, said the crow, and then you will know.
so the goat went up the hill, step by step.
at noon she was tired, and she sat down on a stone.
in the evening she came to the top and looked over.
on the other side there was a hill, and on the hill a goat.
hello, said the goat. hello, said the other goat.

the cat and the boat

a cat found a boat at the side of the lake.
whose boat is this? asked the cat.
it is nobody's boat, said the frog. it is old.
may i have it? asked the cat.
you may have it, said the frog, if you take me along.
so the cat and the frog went out on the lake.
the wind came, and the boat went to the left.
the wind came, and the boat went to the right.
where are we going? asked the frog.
i do not know, said the cat, and it does not matter.
in the evening the wind took them home.

the dog and the bell

a dog lived in the house by the church.
every morning the bell rang, and the dog woke up.
why does the bell ring? asked the dog.
it rings so that we know the time, said the hen.
why must we know the time? asked the dog.
so that we wake up, said the hen.
but i am awake, said the dog, because the bell rings.
then the bell has done its work, said the hen.
and every morning the bell rang, and the dog woke up.

the crow and the stone

a crow was thirsty, and the water in the jar was low.
how do i get to the water? asked the crow.
take a stone, said the owl, and let it fall into the jar.
so the crow took a stone and let it fall into the jar.
the water was still low.
take a stone, said the owl, and let it fall into the jar.
so the crow took a stone and let it fall into the jar.
the water came up a little, and a little more.
in the evening the water was high, and the crow drank.
thank you, said the crow. you are welcome, said the owl.

the duck and the winter

a duck lived on the lake, and the winter came.
the lake is cold, said the duck. where do i go?
come with us to the south, said the geese.
the south is far, said the duck. i am small.
we go step by step, said the geese, and we wait for you.
so the duck went with the geese to the south.
when she was tired, the geese sat down and waited.
in the south the lake was warm, and there was enough bread.
thank you, said the duck. you are welcome, said the geese.

the sheep and the wolf

a sheep met a wolf at the side of the wood.
are you going to eat me? asked the sheep.
i am not hungry, said the wolf. i am cold.
then come home with me, said the sheep. i have wool.
so the wolf went home with the sheep.
the sheep gave him wool, and the wolf was warm.
why do you give me wool? asked the wolf.
you were cold, said the sheep, and i have enough.
and from that day on, the wolf was not cold.

the frog and the moon

a frog sat by the lake and saw the moon in the water.
the moon has come to me, said the frog.
so the frog went into the water, and the moon was gone.
where is the moon? asked the frog.
it is up there, said the owl, and it is down here.
how can it be up there and down here? asked the frog.
sit still, said the owl, and then you will know.
so the frog sat still, and the water was still.
and there was the moon, up there and down here.

the donkey and the cart

a donkey went to the town with a cart full of apples.
the road was long, and the cart was heavy.
may i have an apple? asked the pig.
you may have one, said the donkey. i have enough.
may i have an apple? asked the goat.
you may have one, said the donkey. i have enough.
when the donkey came to the town, the cart was light.
where are the apples? asked the baker.
they are on the road, said the donkey, and so are my friends.

the owl and the letter

an owl lived in the old tree behind the church.
one day a letter came, and on the letter was no name.
for whom is the letter? asked the owl.
i do not know, said the mouse. you may read it.
so the owl sat down and read the letter.
dear friend, said the letter, i think of you.
the winter is long, and the wood is still.
come and see me when the snow is gone.
for whom is the letter? asked the mouse.
it is for all of us, said the owl.

the pig and the mud

a pig lived in the garden behind the mill.
every day she sat in the mud, and she was happy.
why do you sit in the mud? asked the hen.
it is warm, said the pig, and it is soft.
but you are not clean, said the hen.
that is true, said the pig. are you happy?
the hen did not know what to say.
so the hen sat down in the mud, and it was warm.
and from that day on, there was mud for two.

the snail and the race

a snail met a hare at the side of the road.
let us run to the old tree, said the hare.
so the hare ran, and the snail went step by step.
the hare came to the old tree and waited.
he waited until noon, and he waited until the evening.
in the evening the snail came to the old tree.
why were you so slow? asked the hare.
i looked at the flowers, said the snail. did you see them?
i saw no flowers, said the hare.
then come back with me, said the snail, step by step.

the baker and the snow

a baker lived in the town, and the winter came.
the snow fell all day, and the snow fell all night.
in the morning the door of the house did not open.
how do i get out? asked the baker.
wait until noon, said the cat. the sun will come.
but who will bake the bread? asked the baker.
so the baker sat down by the fire and baked the bread.
at noon the sun came out, and the door was open.
in the street all the town waited for the bread.
thank you, said the town. you are welcome, said the baker.

the hare and the shadow

a hare saw his shadow on the road.
who are you? asked the hare.
the shadow did not say a word.
so the hare ran to the left, and the shadow ran to the left.
so the hare ran to the right, and the shadow ran to the right.
why do you run after me? asked the hare.
it is your shadow, said the crow. the sun makes it.
what must i do? asked the hare.
wait until the evening, said the crow.
in the evening the sun was gone, and the shadow was gone.
now i am alone, said the hare, and he was sad.
wait until the morning, said the crow.

the bee and the flower

a bee lived in the garden behind the church.
every morning she went to a flower by the door.
may i have a little honey? asked the bee.
you may have it, said the flower, if you come back.
so the bee took a little honey and went home.
the next morning the bee came back.
may i have a little honey? asked the bee.
you may have it, said the flower, if you come back.
and every morning the bee came back.

the wolf and the song

a wolf lived in the wood, and he was alone.
every night he sat on a stone and sang to the moon.
why do you sing? asked the fox.
i sing because i am alone, said the wolf.
then i will sing with you, said the fox.
so the wolf and the fox sat on the stone and sang.
the owl came, and the crow came, and the hare came.
all of them sang to the moon, and the moon was high.
are you alone now? asked the fox.
no, said the wolf, but i will sing.

the geese and the road

three geese came to a road, and the road was long.
where does the road go? asked the first of the geese.
it goes to the town, said the second.
it goes to the lake, said the third.
you may go, said the crow, and then you will know.
so the three geese went along the road, step by step.
at noon they came to the town and had a bit of bread.
in the evening they came to the lake.
then you were right, said the second.
and you were right, said the third.

the miller and the wind

a miller lived in the mill on the hill.
when the wind came, the mill went round and round.
one day the wind did not come.
where is the wind? asked the miller.
it is on the other side of the hill, said the crow.
when will it come back? asked the miller.
wait until the morning, said the crow.
so the miller sat down by the door and waited.
in the morning the wind came back.
where were you? asked the miller.
i was tired, said the wind, and i sat down on a stone.

the cow and the gate

a cow lived in the field, and the field had a gate.
every day she looked over the gate and saw the road.
where does the road go? asked the cow.
it goes to the town, said the dog.
what is in the town? asked the cow.
you may go, said the dog, and then you will know.
one day the gate was open, and the cow went to the town.
in the town there was a baker, a church and a bell.
in the evening the cow came home.
what is in the town? asked the dog.
there is no grass, said the cow.

the rabbit and the hole

a rabbit lived in a hole under the old tree.
one day the rain came, and the hole was full of water.
where do i go? asked the rabbit.
come to my house, said the mouse. there is room for two.
but i am large, said the rabbit, and the house is small.
so the rabbit and the mouse made the house larger.
they worked all day, and they worked all night.
in the morning the house was large, and the rain was gone.
now you may go home, said the mouse.
i am at home, said the rabbit.

the letter of the fox

dear friend, the winter is long, and i think of you.
the snow fell all night, and the wood is still.
every night i see the light in the window of the mill.
the miller reads to me, and the cat sits by the fire.
there is enough bread, and there is room for two.
come and see me when the snow is gone.
your friend, the fox.

the letter of the duck

dear friend, the lake in the south is warm.
the geese went step by step, and they waited for me.
every morning the sun comes out, and every evening we sing.
i think of the mill, and i think of the hill.
is the river high? is the garden green?
come and see me when the winter is here.
your friend, the duck.

the letter of the bear

dear friend, the winter is here, and i am tired.
the river is cold, and there is snow on the hill.
i found a hole under the old tree, and it is warm.
i will sleep until the morning, and then i will sleep more.
wake me when the snow is gone and the garden is green.
your friend, the bear.

the fish and the net

a fish lived in the river under the bridge.
one day a net came down, and the fish was in the net.
how do i get out? asked the fish.
i am small, said the mouse, but i can bite.
so the mouse sat on the net and bit, and bit, and bit.
at noon there was a hole, but the hole was small.
in the evening the hole was large, and the fish went out.
thank you, said the fish. you are welcome, said the mouse.
and from that day on, the fish was not afraid.

the ant and the leaf

an ant found a leaf at the foot of the hill.
the leaf is large, said the ant, and i am small.
how do i get it home? asked the ant.
we go step by step, said the other ants.
so the ants took the leaf and went up the hill.
at noon they were tired, and they sat down on a stone.
in the evening they came home, and the rain came.
the rain fell all night, and the ants sat under the leaf.
thank you, said the ant. you are welcome, said the ants.

the horse and the star

a horse lived in the field behind the mill.
every night he looked up and saw a star.
what is that light? asked the horse.
it is a star, said the owl, and it is far.
how far is it? asked the horse.
it is farther than the town, said the owl.
may i go there? asked the horse.
you may look at it, said the owl, and that is enough.
so the horse looked at the star, and he was happy.
and every night he looked up and saw the star.

the crow and the bread

a crow found a bit of bread on the road.
may i have a little? asked the mouse.
you may have a little, said the crow. i have enough.
may i have a little? asked the duck.
you may have a little, said the crow. i have enough.
in the evening there was no bread.
what will you eat? asked the owl.
i do not know, said the crow.
then the mouse came with an apple, and the duck with a fish.
we have enough, said the mouse and the duck.

the hen and the egg

a hen had an egg, and she sat on it every day.
when will it open? asked the dog.
i do not know, said the hen. i wait.
so the hen sat on the egg, and the dog sat by the hen.
they waited until noon, and they waited until the evening.
in the night the rain came, and the dog gave them his roof.
in the morning the egg was open.
hello, said the small hen. hello, said the dog.
and from that day on, there was room for three.

the goat and the bell

a goat found a bell at the side of the road.
whose bell is this? asked the goat.
it is nobody's bell, said the crow. it is old.
may i have it? asked the goat.
you may have it, said the crow, if you can sleep with it.
so the goat took the bell and went home.
all day the bell rang, and all night the bell rang.
in the morning the goat was tired.
whose bell is this? asked the sheep.
it is yours, said the goat, if you can sleep with it.

the frog and the hill

a frog lived in the lake at the foot of the hill.
what is on the top of the hill? asked the frog.
there is a mill, said the duck, and in the mill a miller.
is there a lake? asked the frog.
i do not know, said the duck. i was never there.
so the frog went up the hill, step by step.
at noon he was thirsty, and there was no water.
in the evening he came to the mill and asked for water.
come in, said the miller. there is water in the jar.
and from that day on, there was a frog in the mill.

the fox and the grapes

a fox saw grapes on the roof of the house.
the grapes are high, said the fox. how do i get them?
wait until they fall, said the hen.
so the fox sat down and waited until noon.
the grapes did not fall.
wait until the evening, said the hen.
so the fox sat down and waited until the evening.
in the evening the wind came, and the grapes fell.
do you like them? asked the hen.
they are sweet, said the fox, and there is enough for two.

the dog and the shadow

a dog went over the bridge with a bit of bread.
in the water he saw a dog with a bit of bread.
may i have a little? asked the dog.
the other dog did not say a word.
it is your shadow, said the duck. the sun makes it.
is he hungry? asked the dog.
he is as hungry as you are, said the duck.
so the dog sat down on the bridge and had his bread.
and the other dog had his bread as well.

the owl and the morning

an owl lived in the wood, and she slept all day.
what is the morning? asked the owl.
in the morning the sun comes out, said the hen.
what is the sun? asked the owl.
it is a lamp, said the mouse, and it is for all of us.
wait until the morning, said the hen, and then you will know.
so the owl sat on the old tree and waited.
in the morning the sun came out, and the wood was green.
it is a large lamp, said the owl, and she slept.

the snail and the house

a snail met a mouse at the foot of the old tree.
where is your house? asked the mouse.
it is here, said the snail. i take it along.
is it heavy? asked the mouse.
it is heavy when i go up, said the snail.
then why do you take it along? asked the mouse.
when the rain comes, said the snail, then you will know.
in the evening the rain came, and the mouse was wet.
may i come in? asked the mouse.
there is no room for two, said the snail, and she was sad.
so the mouse sat under a leaf, and they waited.

the donkey and the song

a donkey lived in the house by the river.
every evening he sang, and nobody liked the song.
why do you sing? asked the cat.
i sing because i am happy, said the donkey.
can you be happy and still? asked the cat.
i do not know, said the donkey. i was never still.
so the donkey sat down and was still until the morning.
in the morning the cat came back.
are you happy? asked the cat.
no, said the donkey.
then sing, said the cat, and she went to the other side.

the bear and the honey

a bear found honey in the old tree behind the church.
may i have a little honey? asked the bear.
you may have it, said the bee, if you leave enough.
how much is enough? asked the bear.
leave as much as you take, said the bee.
so the bear took a little and left a little.
the next morning the bear came back.
may i have a little honey? asked the bear.
you may have it, said the bee. you left enough.

the letter of the mouse

dear friend, the mill is warm, and i am not afraid.
every morning there is a bit of bread by the door.
the cat sits by the fire, and the miller reads.
one day the rain came, and the rabbit came to my house.
there is room for two, and there is room for three.
come and see me when the river is low.
your friend, the mouse.

the letter of the goat

dear friend, i went up the hill, step by step.
on the other side there is a hill, and on the hill a goat.
every evening we sit on a stone and look at the road.
the wind comes, and the mill goes round and round.
i think of the field, and i think of the old tree.
come and see me when the grass is green.
your friend, the goat.

the sheep and the snow

a sheep lived in the field at the side of the wood.
one morning the field was white.
who took the grass? asked the sheep.
it is the snow, said the crow. the grass is under it.
when will it come back? asked the sheep.
wait until the snow is gone, said the crow.
so the sheep waited all day, and she waited all night.
in the morning the wolf came to the field.
are you hungry? asked the wolf. i know where there is hay.
thank you, said the sheep. you are welcome, said the wolf.

the cat and the window

a cat lived in the house by the church.
every day she sat in the window and looked at the street.
what do you see? asked the dog.
i see the baker, said the cat, and the donkey with the cart.
what do they do? asked the dog.
the baker gives the donkey a bit of bread, said the cat.
what does the donkey do? asked the dog.
you may look, said the cat, and then you will know.
so the dog sat down in the window and looked.
and from that day on, there was room for two.
"""
